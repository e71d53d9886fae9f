/** \file
 * The C interface: train dynamic neural networks with the weights resident on the chip.
 *
 * This header is the manual of the C interface. A C++ program uses vpps/vpps.hpp and
 * dynet/dynet.h instead, which are built on it.
 *
 * ## Conventions
 *
 * - A function returns a vpps_status; 0 is success. After a failure vpps_last_error() says in one
 *   line what was wrong, why, and what to do. The text belongs to the calling thread and holds
 *   until that thread's next failure.
 * - A failed call changes nothing. Parameters, graphs and handles are as before, and so is the
 *   memory that results are written to. Only a pointer to a new object is set: to NULL.
 * - A pointer that must not be NULL, and is, is VPPS_ERR_ARGUMENT. The text names its position.
 * - Option structs begin with struct_size; start from their _INIT macro. A program compiled with an
 *   older, shorter version of a struct works: members that it lacks have their defaults.
 * - Engines, graphs, trainers, handles and checkpoints are numbers, not addresses, and no number is
 *   given out twice. A call on an object of another type, or on one that was destroyed or never
 *   made, is VPPS_ERR_ARGUMENT.
 * - Destroy functions accept NULL and return nothing. One that fails sets vpps_last_error() and
 *   destroys nothing. It fails as other calls do, and while a call of another thread uses the
 *   object. A trainer that a handle uses lives until the handle is destroyed. Closing an engine
 *   waits for the calls on its graphs, trainers and handles. Later calls on them are
 *   VPPS_ERR_STATE, but they can still be destroyed.
 * - Tensors are float32, column-major, with the batch slowest: element (i,j) of batch element b of
 *   an R x C tensor is at i + R*(j + C*b).
 * - The library reads the memory that a pointer names before the call returns, and does not keep
 *   the pointer, unless the function says otherwise. Lengths count elements, not bytes.
 *
 * ## Threads and blocking
 *
 * An engine may be called from any thread, one call at a time: a second call waits for the first.
 * One thread records a graph's words. Only vpps_fb() and vpps_infer() return before their work is
 * done. Every call that reads a value or a parameter waits for such calls before it; their
 * descriptions say "Waits".
 *
 * ## Failures
 *
 * Memory that runs out, on the host or a GPU, is VPPS_ERR_MEMORY. Everything is as before the call,
 * and calls that need less memory still work. A fault of the device that CUDA does not recover from
 * is VPPS_ERR_DEVICE from the call that notices it, and from all later calls of that engine that
 * need the device. Other engines, and the process, go on. Parameter values and the factors of
 * collections then read as of the last snapshot (snapshot_batches), if there is one.
 * A script that cannot be made is an error of its batch alone: one of a batch of more than 16 GiB
 * of activations, or one that a defect of the library prevents.
 *
 * Three things still end the process:
 *
 * - The runtime of Go, in which the library is written, ends it if its heap cannot grow or a thread
 *   cannot be started. Before work that grows with a graph the library asks the system for that
 *   memory. So this happens only if other parts of the process take the memory in between.
 * - The loader ends it if there is no room for the library's own data.
 * - The kernel kills a process if the machine or the container promised more memory than it has.
 *
 * ## Living in the host's process
 *
 * No exception, panic or exit crosses this interface. Loading the library starts nothing; its first
 * call starts threads. fork() before the first call is allowed: parent and child may both use the
 * library. After the first call every call in a child returns VPPS_ERR_FORKED: fork earlier, or
 * exec. dlclose() keeps the library in memory; opening it again continues where it was. The process
 * may exit with batches in flight. Threads may come and go.
 *
 * Signal handlers of the host stay in place. Those that are there before the first call are given
 * SA_ONSTACK; handlers installed later need it. The library's threads take none of the host's
 * signals, except SIGPROF and SIGCHLD. Each call gives its thread an alternate signal stack
 * (sigaltstack) if the thread has none.
 *
 * Rounding mode, traps and flush-to-zero of the calling thread change no result, and every call
 * restores them.
 *
 * The caller's current CUDA context stays current. The library uses the primary context of the
 * device, and vpps_engine_close() frees what the engine has there. CUDA_VISIBLE_DEVICES selects and
 * renumbers the devices, as for every CUDA program.
 *
 * ## Environment
 *
 * The library reads the environment at its first call. When an engine is opened, one line on
 * standard error names each malformed or unknown variable, which is then ignored. An unknown device
 * or plan is an error of that call, as is a timeline's file that cannot be made. A process with
 * more rights than its user, as a setuid program has, reads none of these variables and keeps no
 * compiled kernels.
 *
 * - `VPPS_DEVICE=name`: the device where the program names none. The C++ headers read it. A
 *   malformed name is VPPS_ERR_ARGUMENT where the options name no device.
 * - `VPPS_THREADS=N`: threads of the CPU executor, where the options give no number.
 * - `VPPS_WAIT_SECONDS=S`: the longest time, in seconds, that a virtual processor waits for
 *   another, and a rank of a group for the other ranks (10).
 * - `VPPS_CACHE_DIR=path`: the folder of compiled kernels.
 * - `VPPS_SNAPSHOT_BATCHES=N`: updates from one snapshot of the parameters to the next, where the
 *   options give no number.
 * - `VPPS_NVRTC`, `VPPS_LIBCUDA`, `VPPS_MPI`, `VPPS_NCCL=file`: library files to load instead of
 *   searching.
 * - `VPPS_PORT=N`, `VPPS_COMM_FILE=file`: where ranks meet, for vpps_comm_create_launched().
 * - `VPPS_COMM=nccl` or `mpi`: what connects them there, on all ranks alike.
 * - `VPPS_COMM_GRADIENTS=bf16`: vpps_comm_attach() has ranks exchange bfloat16.
 * - `VPPS_PLAN=rpw=N,copies=N,processors=N`: fixes the choices of a GPU plan. Each part is
 *   optional: rows a warp, the most copies of a matrix in registers that are left over, and SMs, of
 *   which each has a processor. A fixed plan is taken even if its kernel spills registers.
 * - `VPPS_PLAN=profile=1`: vpps_fb() runs its first batches under every plan that fits, some
 *   batches each. The fastest plan stays. The choice is stored next to the kernels for these
 *   matrices, this device and this version. All plans compute the same sums, but round them
 *   differently.
 * - `VPPS_PLAN=registers=N,shared=N,partials=N`: bounds a thread's registers for weights, a
 *   processor's shared memory in KB, and the floats of a transposed product's partial results. A
 *   product beyond the last bound reads its matrix from memory.
 * - `VPPS_LOG=level`: off, info or debug, as vpps_log_level, on standard error.
 * - `VPPS_MERGE=0`: vpps_fb() evaluates each of the equal nodes of a large batch. By default
 *   sentences share what they have in common, such as a word, if that is a sixteenth of the nodes
 *   or more. Sums are then rounded differently.
 * - `VPPS_TIMES=1`: measures the device's time for vpps_engine_statistics() and
 * vpps_engine_times().
 * - `VPPS_PROFILE=1`: on either device, every processor notes how long which instructions take, for
 *   vpps_engine_times(), and the log tells tables when the engine is closed: by instruction, by
 *   operation, by cell. On a GPU this is another, slower kernel; results are the same.
 * - `VPPS_TRACE=file`: writes a timeline of the program, of the workers that make scripts and of
 * the device, as trace events, which ui.perfetto.dev shows; at most 256 MiB. A file that cannot be
 *   made is VPPS_ERR_IO from vpps_engine_open().
 * - `VPPS_VERIFY=1`: proves every script sound on the host before it runs.
 * - `VPPS_CHECK=1`: on either device, holds every operand of an instruction against the script's
 *   tensors before it runs, and fills reused memory with NaN. A violation is VPPS_ERR_DEVICE and
 *   names processor, instruction, operand and address. On a GPU this is another kernel, and batches
 *   run one by one.
 */
#ifndef VPPS_H
#define VPPS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The first number of this header's version. The SONAME has it from 1.0 on. */
#define VPPS_VERSION_MAJOR 0
/** The second number. Before 1.0 the interface may change with it, and the SONAME has it. */
#define VPPS_VERSION_MINOR 1
/** The third number: fixes that leave the interface as it is. */
#define VPPS_VERSION_PATCH 0

/** The version of the wire format in vpps_words. */
#define VPPS_WIRE_VERSION 1u

/** The result of a call. The text of the calling thread's last failure is vpps_last_error(). */
typedef enum vpps_status {
  VPPS_OK = 0,              /**< success */
  VPPS_ERR_ARGUMENT = 1,    /**< a wrong argument of the call itself */
  VPPS_ERR_GRAPH = 2,       /**< the graph: a bad index, shape or operation */
  VPPS_ERR_STATE = 3,       /**< the call does not fit the calls before it */
  VPPS_ERR_NUMERIC = 4,     /**< NaN or infinity in a gradient norm or a loss */
  VPPS_ERR_DEVICE = 5,      /**< the device or its driver failed */
  VPPS_ERR_MEMORY = 6,      /**< memory exhausted */
  VPPS_ERR_IO = 7,          /**< a file cannot be read or written, or is damaged */
  VPPS_ERR_UNSUPPORTED = 8, /**< not available on this machine or in this build */
  VPPS_ERR_FORKED = 9,      /**< in a child forked after the first call */
  VPPS_ERR_INTERNAL = 10,   /**< a defect of libvpps; the text says where */
  VPPS_ERR_RANK = 11        /**< another rank of the group failed, is missing, or differs */
} vpps_status;

typedef struct vpps_engine vpps_engine; /**< one per device: parameters, kernels, order of calls */
typedef struct vpps_graph vpps_graph;   /**< one computation graph */
typedef struct vpps_trainer vpps_trainer; /**< an update rule and its parameters */
typedef struct vpps_handle vpps_handle;   /**< a model planned for a device */

/** "0.1.0": the library's version. Static storage. */
const char *vpps_version(void);
/** One line: the library, its Go version, build tags, CPU variant. Static storage. */
const char *vpps_build_info(void);
/** The calling thread's last failure, one line, "" if none. Valid until its next failure. */
const char *vpps_last_error(void);

/** A tensor's dimensions. */
typedef struct vpps_dim {
  uint32_t nd;   /**< the number of axes, at most 7 */
  uint32_t bd;   /**< the batch size, 1 if there is no batch */
  uint32_t d[7]; /**< the sizes of the axes; only the first nd count */
} vpps_dim;

/* ---- front-ends --------------------------------------------------------- */

/** A front-end defines the DyNet classes that a program is compiled against. There are two, and
 * a process can use only one: they give the same names to different classes. This one is the
 * headers of this project. */
#define VPPS_FRONTEND_BUNDLED "libvpps's own DyNet headers"
/** The other front-end: DyNet itself, whose graphs vpps/vpps.hpp hands to libvpps. */
#define VPPS_FRONTEND_INSTALLED "an installed DyNet"

/** Says which front-end this process uses. A front-end calls it before it opens an engine; programs
 * in C need not. The first call decides.
 * \param kind one of the texts above, or 1 to 100 bytes that name a front-end of your own
 * \return VPPS_ERR_STATE if another front-end was named before; the same one again is VPPS_OK */
vpps_status vpps_frontend(const char *kind);

/* ---- seeing what happens -------------------------------------------------- */

/** How much the log tells. */
typedef enum vpps_log_level {
  VPPS_LOG_OFF = 0,  /**< nothing, the default */
  VPPS_LOG_INFO = 1, /**< plans, compilations, fallbacks, snapshots, slow batches */
  VPPS_LOG_DEBUG = 2 /**< also the report of each plan, and of memory when an engine is closed */
} vpps_log_level;

/** A program's function for the log. It gets one line at a time, from the thread that calls the
 * library or from one of the library's own threads. It must not throw, and it must not wait for a
 * thread that calls the library. Calls of the library from it are VPPS_ERR_STATE, but for
 * vpps_last_error() and vpps_version().
 * \param data as given to vpps_set_log()
 * \param level the line's
 * \param line terminated, without a newline, valid during the call: "compile: compiling a kernel
 * for 3 matrices, 4 s". The text before the colon is the kind of event: plan, compile, fallback,
 * snapshot, slow batch, profile or memory */
typedef void (*vpps_log_function)(void *data, vpps_log_level level, const char *line);

/** Sets the log of the whole process, which VPPS_LOG sets otherwise. When it returns, a function
 * that was set before is called no more.
 * \param level events up to this level are told. VPPS_ERR_ARGUMENT: there is no such level
 * \param function NULL: standard error
 * \param data for the function; the program keeps it alive */
vpps_status vpps_set_log(vpps_log_level level, vpps_log_function function, void *data);

/** Describes this machine in lines of text: CPU, GPUs, the files of driver and NVRTC, the folder of
 * compiled kernels, the variables that are set. The last line names the device of a program that
 * names none, and says why it is no GPU. Opens the GPUs for a moment. text, size and
 * needed: as in vpps_plan_report(). */
vpps_status vpps_system_report(char *text, size_t size, size_t *needed);

/* ---- engines ------------------------------------------------------------ */

/** Options of vpps_engine_open(). Start from VPPS_ENGINE_OPTIONS_INIT. */
typedef struct vpps_engine_options {
  uint32_t struct_size; /**< bytes of this struct, set by the macro */
  /** "cpu", "cuda", "cuda:1" or "auto" (NULL): the first GPU, else the CPU. "cpu:1", "cpu:2" ...
   * are further engines on the CPU, each with its own threads. */
  const char *device;
  uint32_t threads;    /**< CPU: threads, up to 1024; 0: VPPS_THREADS, else the machine's */
  uint32_t processors; /**< CPU: virtual processors, up to 1024; 0: one a thread, fewer if small */
  uint32_t seed;       /**< of random operations; 0: drawn from the system */
  /** Updates from one snapshot of the parameter values, in host memory, to the next, for the case
   * that the device is lost. 0: VPPS_SNAPSHOT_BATCHES, else never. A copy waits for the batches
   * before it. */
  uint32_t snapshot_batches;
  /** How plans are chosen, in the form of VPPS_PLAN; NULL: VPPS_PLAN. The CPU has one plan, of
   * which only transposed is chosen. */
  const char *plan;
  const char *trace; /**< the file of a timeline; NULL: VPPS_TRACE, else none */
  uint32_t times;    /**< 1: measure the device's time; 0: VPPS_TIMES */
  uint64_t profile;  /**< 1: measure each kind of instruction; 0: VPPS_PROFILE */
  /** 1: the program is one of those that a launcher has started to train together:
   * vpps_comm_create_launched(). Where nothing names a GPU or a number of threads, it has the GPU
   * with its number on this machine, or its share of the cores. "cpu" and "cuda:1" stay what they
   * are. Rank K above 0 writes the timeline of trace to trace.K. */
  uint64_t data_parallel;
} vpps_engine_options;
/** The defaults: the first GPU, else the CPU, and the environment's settings. */
#define VPPS_ENGINE_OPTIONS_INIT                                                                   \
  { sizeof(vpps_engine_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Opens the engine of a device. Opening the same device again gives the same engine, with the
 * options of the first call.
 * \param options NULL: the defaults
 * \param engine receives the engine. The caller owns it and calls vpps_engine_close() as often as
 *     it was opened; the last call ends it
 * \return VPPS_ERR_ARGUMENT for a malformed device, plan or number; VPPS_ERR_UNSUPPORTED if the
 *     named device is not there or lacks something; VPPS_ERR_DEVICE, VPPS_ERR_MEMORY; VPPS_ERR_IO
 *     for the timeline's file */
vpps_status vpps_engine_open(const vpps_engine_options *options, vpps_engine **engine);
/** Gives an engine back. The last call waits for all work and frees the engine. Its graphs,
 * trainers and handles must still be destroyed; other calls on them are VPPS_ERR_STATE. */
void vpps_engine_close(vpps_engine *engine);
/** What runs: "cpu: 2 threads, 2 processors, x86-64-v3" or "cuda:0: NVIDIA H200, ...". If "auto"
 * took the CPU although there is a GPU, the text says what the GPU lacks: "cpu: ...; not device
 * cuda:0: no usable NVRTC ...". Writes at most size bytes to text, always terminated. */
vpps_status vpps_engine_describe(vpps_engine *engine, char *text, size_t size);
/** Seeds the random operations from now on. The same seed and the same graphs after it draw the
 * same numbers again, on every device. */
vpps_status vpps_engine_seed(vpps_engine *engine, uint32_t seed);

/** What an engine has counted since it was opened. */
typedef struct vpps_statistics {
  uint32_t struct_size;      /**< bytes of this struct, set by the macro */
  uint64_t batches;          /**< vpps_fb() calls that have finished */
  uint64_t launches;         /**< kernel launches; CPU: executions of scripts */
  uint64_t copies_to_device; /**< copies from host memory to a GPU; 0 on the CPU */
  uint64_t nodes;            /**< graph nodes decoded */
  uint64_t decode_ns;        /**< host time of reading and checking graphs, ns, summed */
  uint64_t plan_ns;          /**< host time of planning and compiling, ns, summed */
  uint64_t schedule_ns;      /**< host time of writing scripts, ns, summed */
  uint64_t execute_ns;       /**< execution, ns, summed; on a GPU only if times are measured */
  uint64_t script_words;     /**< 32-bit words of the last script */
  uint64_t updates;          /**< of parameters that were applied, by vpps_fb() or vpps_update() */
  uint64_t failures;  /**< batches of vpps_fb() that failed; those behind them do not count */
  uint64_t snapshots; /**< of the parameters that were taken */
  uint64_t kernels_compiled;  /**< on a GPU: kernels that NVRTC compiled */
  uint64_t kernels_cached;    /**< on a GPU: kernels that the cache had */
  uint64_t compile_ns;        /**< on a GPU: time of NVRTC, ns, summed over kernels */
  uint64_t bytes_to_device;   /**< on a GPU: bytes copied there, scripts included */
  uint64_t bytes_from_device; /**< on a GPU: bytes copied back; losses lie in shared memory */
  uint64_t templates;         /**< patterns of nodes known now, single ones too */
  uint64_t instances;         /**< likewise: occurrences of them in what was evaluated, summed */
  uint64_t loose_nodes;       /**< of these, nodes outside all learnt patterns, summed */
} vpps_statistics;
/** A vpps_statistics to be filled. */
#define VPPS_STATISTICS_INIT                                                                       \
  { sizeof(vpps_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/** Copies the counts to statistics, which begins as VPPS_STATISTICS_INIT. */
vpps_status vpps_engine_statistics(vpps_engine *engine, vpps_statistics *statistics);

/* ---- parameters --------------------------------------------------------- */

/** Makes a collection of parameters. A collection carries the weight decay: one factor, by which
 * parameters are multiplied whenever a graph reads them, and which each update multiplies by
 * 1-lambda.
 * \param lambda the weight decay, in [0, 1); else VPPS_ERR_ARGUMENT
 * \param collection receives its number, valid until the engine is closed */
vpps_status vpps_collection_create(vpps_engine *engine, float lambda, uint32_t *collection);
/** Changes the weight decay from the next update on; lambda in [0, 1), else VPPS_ERR_ARGUMENT. */
vpps_status vpps_collection_set_lambda(vpps_engine *engine, uint32_t collection, float lambda);
/** The present factor, 1 at first. Waits. An update that leaves it below 0.25 multiplies it into
 * the stored values that it changes, and begins again with 1. */
vpps_status vpps_collection_factor(vpps_engine *engine, uint32_t collection, float *factor);
/** Sets the factor. Stored values and lambda stay: graphs read the parameters times the new factor,
 * from their next evaluation on. To keep what they read, scale the values by old / new
 * (vpps_parameter_scale()). Batches in flight have the factor before. Later updates go on from this
 * one, checkpoints save it, and ranks take that of rank 0. Waits.
 * \param factor above 0 and at most 1; else VPPS_ERR_ARGUMENT */
vpps_status vpps_collection_set_factor(vpps_engine *engine, uint32_t collection, float factor);

/** A flag of vpps_parameter_create(): a table. The last dimension counts the rows. */
#define VPPS_PARAMETER_LOOKUP 1u

/** Creates a parameter in a collection.
 * \param name for error texts and reports; copied, NULL: none
 * \param dim at least one axis, a size above 0, and bd = 1; else VPPS_ERR_ARGUMENT
 * \param flags 0 or VPPS_PARAMETER_LOOKUP
 * \param values as many floats as dim has elements; NULL: zeros
 * \param id receives the parameter's number, valid in this engine's graphs until
 *     vpps_parameter_destroy() or the engine's end
 * \return VPPS_ERR_MEMORY also where all parameters of one kind would exceed 16 GiB */
vpps_status vpps_parameter_create(vpps_engine *engine, uint32_t collection, const char *name,
                                  const vpps_dim *dim, uint32_t flags, const float *values,
                                  uint32_t *id);
/** Frees a parameter; later parameters use its memory. Graphs that mention it fail with
 * VPPS_ERR_GRAPH. Its number is not used again. */
vpps_status vpps_parameter_destroy(vpps_engine *engine, uint32_t id);

/** The two parts of a parameter, of the same size. */
typedef enum vpps_part {
  VPPS_VALUES = 0,  /**< stored values, without the factor of the weight decay */
  VPPS_GRADIENT = 1 /**< the gradient that the next update applies; 0 if none was formed */
} vpps_part;
/** Copies count floats from element offset on, to the caller's memory. Values are stored values,
 * without the factor of the weight decay. A gradient that was never formed reads 0. Elements beyond
 * the parameter's: VPPS_ERR_ARGUMENT. Waits. */
vpps_status vpps_parameter_read(vpps_engine *engine, uint32_t id, vpps_part part, uint64_t offset,
                                uint64_t count, float *to);
/** Sets count floats from element offset on. Rows of a table that are written to the gradient, as
 * whole rows but not all of them, count as looked up: a sparse update moves only such rows.
 * Elements beyond the parameter's: VPPS_ERR_ARGUMENT. Waits. */
vpps_status vpps_parameter_write(vpps_engine *engine, uint32_t id, vpps_part part, uint64_t offset,
                                 uint64_t count, const float *from);
/** Multiplies every element of a part by factor; 0 sets zeros. Waits. */
vpps_status vpps_parameter_scale(vpps_engine *engine, uint32_t id, vpps_part part, float factor);
/** Gives the program memory where it reads and writes a part itself. The engine owns the memory,
 * which is valid until the parameter is destroyed or the engine closed. From then on the parameter
 * is exposed. What the program writes there holds from the engine's next call that uses the part.
 * What calls change is there before they return, so vpps_fb() waits for its batch. On the CPU
 * values are the engine's own memory and cost nothing. Anything else is a copy, which every call
 * compares: about 1 ms for a table of 20 MB. */
vpps_status vpps_parameter_expose(vpps_engine *engine, uint32_t id, vpps_part part, float **values);
/** Whether trainers change the parameter: 1 (at first) or 0. */
vpps_status vpps_parameter_set_updated(vpps_engine *engine, uint32_t id, int updated);
/** The rows of a table whose gradient is pending, ascending. Waits.
 * \param rows receives up to capacity row numbers
 * \param capacity how many row numbers rows has room for
 * \param count receives how many rows there are, which may be more than capacity
 * \param all receives 1 if the table as a whole has a gradient, else 0 */
vpps_status vpps_parameter_touched(vpps_engine *engine, uint32_t id, uint32_t *rows,
                                   uint64_t capacity, uint64_t *count, int *all);
/** The memory of a parameter's values itself, where the device computes in host memory (the CPU);
 * NULL elsewhere. Waits. The engine owns it until it closes or the parameter is destroyed. Do not
 * touch it while a batch of vpps_fb() or vpps_infer() is in flight. After writing there, write any
 * of the values by vpps_parameter_write(): otherwise graphs take values evaluated before for new
 * ones. */
vpps_status vpps_parameter_memory(vpps_engine *engine, uint32_t id, float **values);
/** share = 1: gives the program the memory of the parameter's gradient itself, where the device
 * computes in host memory (the CPU); NULL elsewhere. Waits. The memory is valid as long as that of
 * the values. What the program writes there counts for the next vpps_backward(), which adds to it,
 * and vpps_update(), which leaves zeros. vpps_fb() is VPPS_ERR_STATE meanwhile. share = 0: the
 * program no longer uses the memory; the gradient stays. */
vpps_status vpps_parameter_gradient_memory(vpps_engine *engine, uint32_t id, int share,
                                           float **gradient);
/** Says which rows of a table's gradient the program has written, if it has the gradient's memory
 * (VPPS_ERR_STATE otherwise). Only these rows may be other than zero (all = 1: any row), and a
 * sparse update moves only them. Call it after writing rows or setting them to zero. rows: count
 * numbers, each once. */
vpps_status vpps_parameter_set_touched(vpps_engine *engine, uint32_t id, const uint32_t *rows,
                                       uint64_t count, int all);

/* ---- graphs ------------------------------------------------------------- */

/** Makes an empty graph. The caller owns it: vpps_graph_destroy(). */
vpps_status vpps_graph_create(vpps_engine *engine, vpps_graph **graph);
/** Destroys a graph, also while a vpps_fb() over it is in flight. */
void vpps_graph_destroy(vpps_graph *graph);

/** What a call adds to the graph, in the wire format. The library copies it before the call
 * returns.
 *
 * nodes: for each node
 *
 *     op | dim_id << 8      op: bridge/ops; dim_id: an index into dims
 *     [count]               only if the operation is variadic
 *     argument indices      absolute, each smaller than the node's own index
 *     attribute words       as many as the operation has
 *
 * dims: the table of dims, append-only.
 *
 * inputs: ALL input words of the graph so far: data (float bits), row numbers, labels. Attribute
 * words of kind offset index it. Every call that evaluates the nodes concerned reads them anew, so
 * a program may change them between calls. */
typedef struct vpps_words {
  uint32_t version;       /**< VPPS_WIRE_VERSION */
  const uint32_t *nodes;  /**< the words of the new nodes only */
  size_t node_words;      /**< how many words nodes has */
  uint32_t node_count;    /**< how many nodes these words are */
  const vpps_dim *dims;   /**< new dims only */
  size_t dim_count;       /**< how many dims */
  const uint32_t *inputs; /**< all input words of the graph */
  size_t input_words;     /**< how many words inputs has */
} vpps_words;

/* Each of the calls below first appends words (NULL: nothing new). If the call fails, for
 * whatever reason, nothing is appended: the words can be given again. nodes, dims and inputs
 * may be NULL where their length is 0. */

/** Evaluates nodes up to and including node. Waits.
 * \param words what is new in the graph, NULL: nothing. A call that fails appends nothing, so the
 *     words can be given again. nodes, dims and inputs may be NULL where their length is 0
 * \param restart 1 (DyNet's forward): evaluates all nodes from 0, reads inputs and parameters anew
 *     and draws random nodes again. 0 (incremental_forward): goes on from the first node that is
 *     not evaluated yet
 * \return VPPS_ERR_GRAPH names node, operation and reason */
vpps_status vpps_forward(vpps_graph *graph, const vpps_words *words, uint32_t node, int restart);
/** Copies the value of node to the caller's memory and evaluates what is missing first. Waits.
 * words: as in vpps_forward(). count must be the size of the node's dim, batch included. After a
 * vpps_fb() over the graph, a value that it has not kept is VPPS_ERR_STATE. */
vpps_status vpps_value(vpps_graph *graph, const vpps_words *words, uint32_t node, float *to,
                       size_t count);
/** Adds the gradients of the scalar node to the parameters' gradients, and evaluates what is
 * missing first. Waits. words: as in vpps_forward(). full = 1: forms gradients also for nodes that
 * no parameter feeds. VPPS_ERR_NUMERIC: the value of node is NaN or infinite. The text says which
 * node's value was so first, as that of vpps_fb() does, and gradients are as before. */
vpps_status vpps_backward(vpps_graph *graph, const vpps_words *words, uint32_t node, int full);
/** Forms gradients for vpps_gradient(), as vpps_backward() does with full = 1, but leaves the
 * parameters' gradients as they are. So a program learns d(node)/d(input) of an input whose value
 * it has computed itself, before it adds gradients to parameters. Waits. */
vpps_status vpps_node_gradients(vpps_graph *graph, const vpps_words *words, uint32_t node);
/** Copies d(loss)/d(node) of the last vpps_backward() or vpps_node_gradients(). count must be the
 * size of the node's dim. VPPS_ERR_STATE: neither came since the graph was last evaluated or
 * changed, or node comes after the loss. Waits. */
vpps_status vpps_gradient(vpps_graph *graph, uint32_t node, float *to, size_t count);
/** Evaluates nodes for a program that has many answers to give: as vpps_forward() with restart = 1,
 * but it returns before the work is done, as vpps_fb() does. So the program records the next graph
 * while the device answers this one. The graph then counts as not evaluated, and may be truncated
 * or destroyed at once. Calls of vpps_infer() and vpps_fb() come in any order: an answer is that of
 * the parameters after all vpps_fb() before it. Where vpps_fb() waits for its batch, vpps_infer()
 * does, too. It exchanges nothing with other ranks, but first waits for the batches of this rank.
 *
 * An answer in flight after a batch of vpps_fb() that fails is evaluated once more, for its result
 * is that of the parameters before that batch. As other calls do, vpps_infer() tells the failure of
 * an earlier batch. Then it has asked for nothing and appended nothing: call it again.
 * \param words as in vpps_forward()
 * \param nodes the numbers of the count nodes whose values are wanted, in any order; none is
 *     VPPS_ERR_ARGUMENT. All nodes up to the last of them are evaluated
 * \param ticket receives the number of the answer, from 1, for vpps_infer_result(). The engine
 *     keeps the answer, 4 bytes an element of host memory, until it is fetched or dropped, or the
 *     engine is closed: only the program bounds how many there are. Memory for it that the host or
 *     the device does not have is VPPS_ERR_MEMORY. A GPU keeps room for four of the largest answers
 *     in pinned memory of the host */
vpps_status vpps_infer(vpps_graph *graph, const vpps_words *words, const uint32_t *nodes,
                       size_t count, uint64_t *ticket);
/** Waits for an answer of vpps_infer() and copies the values of its nodes to the caller's memory,
 * one after the other in the order of nodes. Answers may be fetched in any order, each once: the
 * ticket is used up, also by the error of an answer that could not be evaluated. count must be the
 * sum of the sizes of the nodes' dims. Another count, and a ticket that was never given or is used
 * up, is VPPS_ERR_ARGUMENT. It tells no failure of vpps_fb(). If the device is lost, answers that
 * have reached the host can still be fetched. */
vpps_status vpps_infer_result(vpps_engine *engine, uint64_t ticket, float *to, size_t count);
/** Forgets an answer of vpps_infer() that nobody will fetch. Does not wait. */
vpps_status vpps_infer_drop(vpps_engine *engine, uint64_t ticket);
/** Drops nodes from node on; values of the nodes before it stay. */
vpps_status vpps_graph_truncate(vpps_graph *graph, uint32_t node);
/** Makes nodes from node on count as not evaluated. */
vpps_status vpps_graph_invalidate(vpps_graph *graph, uint32_t node);

/* ---- training ----------------------------------------------------------- */

/** DyNet's update rules. In the formulas of docs/INSTRUCTIONS.md, "Rules of update". For each rule:
 * DyNet's trainer, its default learning rate, and the other members of vpps_trainer_options that
 * the rule reads. A default of epsilon stands where it is not that of VPPS_TRAINER_OPTIONS_INIT. */
typedef enum vpps_rule {
  VPPS_RULE_SGD = 0,      /**< SimpleSGD and CyclicalSGD, 0.1 */
  VPPS_RULE_MOMENTUM = 1, /**< MomentumSGD, 0.01: momentum */
  VPPS_RULE_ADAGRAD = 2,  /**< Adagrad, 0.1: epsilon 1e-20 */
  VPPS_RULE_ADADELTA = 3, /**< Adadelta: rho, epsilon 1e-6; not learning_rate */
  VPPS_RULE_RMSPROP = 4,  /**< RMSProp, 0.1: rho, epsilon 1e-20 */
  VPPS_RULE_ADAM = 5,     /**< Adam, 0.001: beta_1, beta_2, epsilon 1e-8 */
  VPPS_RULE_AMSGRAD = 6,  /**< Amsgrad, 0.001: as Adam */
  VPPS_RULE_EG = 7        /**< EG, 0.1: momentum; values must be positive */
} vpps_rule;

/** Options of a trainer. A number that its rule reads and that makes no sense is VPPS_ERR_ARGUMENT;
 * a number that its rule does not read is not looked at. Start from VPPS_TRAINER_OPTIONS_INIT. */
typedef struct vpps_trainer_options {
  uint32_t struct_size; /**< bytes of this struct, set by the macro */
  uint32_t rule;        /**< a vpps_rule */
  float learning_rate;  /**< finite and not negative */
  int clipping;         /**< 1: scale gradients down to a global norm of clip_threshold */
  float clip_threshold; /**< above 0 */
  int sparse;           /**< 1: update only the rows of tables that have a gradient */
  uint32_t collection;  /**< the collection whose weight decay the updates advance */
  float momentum;       /**< in [0, 1) */
  float rho;            /**< in [0, 1) */
  float epsilon;        /**< finite and not negative */
  float beta_1;         /**< in [0, 1) */
  float beta_2;         /**< in [0, 1) */
} vpps_trainer_options;
/** DyNet's SimpleSGDTrainer: rate 0.1, gradients clipped to a norm of 5. */
#define VPPS_TRAINER_OPTIONS_INIT                                                                  \
  {                                                                                                \
    sizeof(vpps_trainer_options), VPPS_RULE_SGD, 0.1f, 1, 5.0f, 1, 0, 0.9f, 0.95f, 1e-8f, 0.9f,    \
        0.999f                                                                                     \
  }

/** Makes a trainer. Several trainers may have the same parameter: each remembers for itself, and
 * the one that updates first applies the gradient and clears it. \param ids the numbers of the
 * count parameters to be updated, in order, each once \param trainer receives the trainer. The
 * caller owns it: vpps_trainer_destroy() */
vpps_status vpps_trainer_create(vpps_engine *engine, const vpps_trainer_options *options,
                                const uint32_t *ids, size_t count, vpps_trainer **trainer);
/** Changes the options from the next update on. The rule must be the one that the trainer was made
 * with; else VPPS_ERR_ARGUMENT. */
vpps_status vpps_trainer_set(vpps_trainer *trainer, const vpps_trainer_options *options);
/** Adds parameters that were made since: count numbers, each once and not yet the trainer's. */
vpps_status vpps_trainer_add(vpps_trainer *trainer, const uint32_t *ids, size_t count);
/** Makes the rule forget what it remembers of all parameters: momentum, averages (DyNet's restart).
 * The count of updates, which Adam's correction follows, goes on. Waits. */
vpps_status vpps_trainer_restart(vpps_trainer *trainer);
/** Copies all that the rule remembers of a parameter, count floats: vectors as long as it, one
 * after the other. Momentum and EG: the velocity. Adagrad: the sum of squares. Adadelta: the
 * averages of squares of gradients, then of steps. RMSProp: that of gradients. Adam: the averages
 * of gradients, then of their squares. AMSGrad: these two, then the largest of the latter. SGD:
 * nothing. Another count is VPPS_ERR_ARGUMENT. Waits. */
vpps_status vpps_trainer_read_state(vpps_trainer *trainer, uint32_t id, uint64_t count, float *to);
/** Sets what the rule remembers of a parameter, in the order of vpps_trainer_read_state(). Waits.
 */
vpps_status vpps_trainer_write_state(vpps_trainer *trainer, uint32_t id, uint64_t count,
                                     const float *from);
/** The count of updates, which Adam's correction follows. Waits. */
vpps_status vpps_trainer_updates(vpps_trainer *trainer, uint64_t *updates);
/** Sets the count of updates, to 2^53 at most; more is VPPS_ERR_ARGUMENT. Waits. */
vpps_status vpps_trainer_set_updates(vpps_trainer *trainer, uint64_t updates);
/** Applies the gradients and clears them (DyNet's update). Waits.
 * \param clipped (may be NULL) receives 1 if the gradients were scaled down, else 0
 * \return VPPS_ERR_NUMERIC if the norm is not finite. Nothing was changed; the text names a
 *     parameter. Before the next vpps_backward() set the gradients to zero, by
 *     vpps_parameter_scale(engine, id, VPPS_GRADIENT, 0). VPPS_ERR_STATE if vpps_fb() has applied
 *     these parameters' gradients and no vpps_backward() came since */
vpps_status vpps_update(vpps_trainer *trainer, int *clipped);
/** Destroys a trainer; a handle that uses it keeps it alive. A trainer that vpps_handle_trainer()
 * gave, and that the program did not make or has destroyed, is refused: it is destroyed with the
 * last handle that uses it. */
void vpps_trainer_destroy(vpps_trainer *trainer);

/** Plans the parameters of a model for the engine's device and compiles its kernel, or finds the
 * kernel in the cache. A cache that cannot be used is no error: the kernel is compiled at every
 * start, and vpps_plan_report() says why. (The paper's offline step: its plan and kernel
 * specialization.)
 * \param ids the numbers of the count parameters, each once
 * \param trainer NULL: SimpleSGD at its defaults over ids
 * \param handle receives the handle. The caller owns it: vpps_handle_destroy() */
vpps_status vpps_handle_create(vpps_engine *engine, const uint32_t *ids, size_t count,
                               vpps_trainer *trainer, vpps_handle **handle);
/** Destroys a handle, and its trainer if nothing else has it. */
void vpps_handle_destroy(vpps_handle *handle);
/** The handle's trainer: its own, or the one given. The handle owns it, or whoever made it. NULL:
 * an error, see vpps_last_error(). */
vpps_trainer *vpps_handle_trainer(vpps_handle *handle);

/** vpps_fb() gives the loss of so many calls before. */
#define VPPS_FB_LAG 8
/** Forward, backward and update of the scalar node in one launch (the paper's fb). Returns before
 * the work is done. The graph then counts as not evaluated, and may be destroyed at once.
 *
 * Errors of the graph come from this call. Numeric and device errors come once, with the batch's
 * number, from a later call that waits: from this one, if its update multiplies the factor of the
 * weight decay into the values. A failed batch and those after it change nothing:
 * parameters, their pending gradients and the weight decay are as before it. Only gradients that no
 * trainer applies are zero where these batches added to them. After it the losses count anew.
 * \param words as in vpps_forward()
 * \param stale (may be NULL) receives the loss of #VPPS_FB_LAG calls before; 0 for the first ones.
 *     Of several ranks it may be NaN if that batch failed, which the next call tells
 * \return VPPS_ERR_NUMERIC, of an earlier batch: the loss or the norm of the gradients is NaN or
 *     infinite. The text names the first node in recording order whose value is not finite, its
 *     arguments' ranges and, of a leaf, the parameter and row; else the parameter whose gradient is
 *     not finite. To find it, the engine evaluates the batch once more */
vpps_status vpps_fb(vpps_handle *handle, vpps_graph *graph, const vpps_words *words, uint32_t node,
                    float *stale);
/** Names nodes of the graph whose values vpps_value() reads after the next vpps_fb() over the
 * graph. Without this call only nodes that were evaluated before it have values. The nodes may be
 * among the words to come, but not after the loss. Calls add up, until a vpps_fb() succeeds or the
 * nodes are truncated. Kept values are those from before the update. They last until the graph is
 * evaluated, trained or changed, or a batch fails. */
vpps_status vpps_handle_keep(vpps_handle *handle, vpps_graph *graph, const uint32_t *nodes,
                             size_t count);
/** Waits for all batches and gives the last one's loss. VPPS_ERR_STATE: there was no vpps_fb() yet,
 * or none since a batch failed. */
vpps_status vpps_sync_latest_loss(vpps_handle *handle, float *loss);
/** How many batches of this handle had their gradients scaled down. Waits. */
vpps_status vpps_handle_clips(vpps_handle *handle, uint64_t *clips);

/* ---- several engines train one model -------------------------------------- */

/* A rank is one engine of a group that trains one model. Each rank calls the functions that
 * programs train with, over batches of its own. The gradients of all ranks are summed before norm,
 * clipping and update, so N ranks train as one does with their batches joined. Of a table these are
 * the rows that any rank has used.
 *
 * vpps_comm_attach(), vpps_fb(), vpps_update(), vpps_global_loss(), vpps_comm_join(),
 * vpps_comm_barrier() and vpps_comm_broadcast() are calls of the group: all ranks make them, in the
 * same order. All but vpps_fb() first wait for the batches of this rank. Parameters, states and
 * counts of updates may be set at any time, by all ranks; the next call of the group, or
 * vpps_backward(), gives all ranks the numbers of rank 0.
 *
 * VPPS_ERR_RANK: another rank failed, has other parameters or trainers, makes another call, or did
 * not arrive in time. The text names it. Parameters are as before the batch, on all ranks. If a
 * rank is missing, or has aborted, the group has ended: every later call of it says so. Otherwise
 * training can go on. A loss or norm that is not finite on one rank is VPPS_ERR_NUMERIC on all. */

/** One rank's place in a group. */
typedef struct vpps_comm vpps_comm;

/** How the gradients of several ranks become one. */
typedef enum vpps_reduction {
  VPPS_SUM = 0,         /**< their sum */
  VPPS_AVERAGE = 1,     /**< each weighed by vpps_comm_count(), over the sum of the counts */
  VPPS_SUM_BF16 = 2,    /**< their sum, exchanged in bfloat16: half the bytes, rounded to 0.4 %;
                             by NCCL, which rounds each addition, to 0.2 % for each rank */
  VPPS_AVERAGE_BF16 = 3 /**< likewise VPPS_AVERAGE */
} vpps_reduction;

/** Makes a group of ranks in this process. Each is used by a thread of its own, for they wait for
 * one another.
 * \param size how many ranks, 1 to 1024
 * \param seconds how long a call waits for another rank; 0: VPPS_WAIT_SECONDS
 * \param comms receives size communicators, by rank. The caller owns them: vpps_comm_destroy() */
vpps_status vpps_comm_create_local(uint32_t size, double seconds, vpps_comm **comms);
/** Makes this process a rank of the MPI program that mpirun or srun has started it in. MPI is
 * started if the program has not done so; it is ended with the process. The plug-in libvpps_mpi.so,
 * which "make mpi" builds against the machine's MPI, is found next to libvpps.so, by the linker, or
 * by VPPS_MPI. Another call gives the same rank. \param seconds how long a call waits for another
 * rank, as the first call says; 0: VPPS_WAIT_SECONDS \param comm receives the communicator. The
 * caller owns it: vpps_comm_destroy() \return VPPS_ERR_UNSUPPORTED if there is no plug-in, or MPI
 * does not start */
vpps_status vpps_comm_create_mpi(double seconds, vpps_comm **comm);
/** The size of an id of vpps_comm_nccl_id(). */
enum { VPPS_NCCL_ID_BYTES = 128 };
/** Makes the id of a group of GPUs. The process that will be rank 0 calls it, and the program gives
 * the id to the others: by a file, or over the network.
 * \param id receives VPPS_NCCL_ID_BYTES bytes
 * \return VPPS_ERR_UNSUPPORTED if there is no NCCL, or one that is older than 2.11 */
vpps_status vpps_comm_nccl_id(void *id);
/** Makes the calling process, or thread, a rank of a group of GPUs, which NCCL connects: gradients
 * are summed in their memory. All ranks call it, each with its own GPU, and wait for one another.
 * NCCL is libnccl.so.2, found by VPPS_NCCL, the linker, or as the Python package nvidia-nccl.
 * \param device the GPU: "cuda", or "cuda:1". The engine that is attached is on the same
 * \param rank from 0; rank 0 is in the process that has made the id
 * \param size how many ranks, 1 to 1024
 * \param id of vpps_comm_nccl_id(), the same on all ranks
 * \param seconds how long a call of the group waits for another rank; this one waits six times as
 * long. 0: VPPS_WAIT_SECONDS
 * \param comm receives the communicator. The caller owns it: vpps_comm_destroy()
 * \return VPPS_ERR_UNSUPPORTED if there is no NCCL or GPU, or it refuses; VPPS_ERR_RANK if a rank
 * does not come in time */
vpps_status vpps_comm_create_nccl(const char *device, uint32_t rank, uint32_t size, const void *id,
                                  double seconds, vpps_comm **comm);
/** Makes this process a rank of those that its launcher has started: torchrun, Open MPI's or
 * MPICH's mpirun, or srun. The launcher's variables say so: docs/manual/parallel.md has them.
 * Without a launcher it is the only rank. GPUs are connected by NCCL, if all ranks have it, else by
 * MPI: see vpps_comm_create_mpi(). VPPS_COMM chooses one of them. For NCCL ranks meet by MPI, else
 * by the file of VPPS_COMM_FILE, else by TCP at rank 0: MASTER_ADDR, and VPPS_PORT or the port
 * after MASTER_PORT. All ranks call it. It waits for them for six times as long as a call. \param
 * engine whose device is connected. Open it with data_parallel \param seconds how long a call waits
 * for another rank; 0: VPPS_WAIT_SECONDS \param comm receives the communicator. The caller owns it:
 * vpps_comm_destroy() \return VPPS_ERR_ARGUMENT for a malformed variable; VPPS_ERR_UNSUPPORTED if
 * something is missing; VPPS_ERR_RANK if ranks are missing or differ */
vpps_status vpps_comm_create_launched(vpps_engine *engine, double seconds, vpps_comm **comm);
/** Which rank this is, from 0, and how many there are. Each of rank and size may be NULL. */
vpps_status vpps_comm_rank(vpps_comm *comm, uint32_t *rank, uint32_t *size);
/** Returns when all ranks have called it. Not while a call of the group runs on the rank's engine.
 */
vpps_status vpps_comm_barrier(vpps_comm *comm);
/** Gives all ranks the size bytes that rank from has at data. All ranks call it, with the same size
 * and from, as vpps_comm_barrier(). */
vpps_status vpps_comm_broadcast(vpps_comm *comm, void *data, size_t size, uint32_t from);
/** Ends the group: calls that wait, and later ones, are VPPS_ERR_RANK on every rank.
 * \param why stands in their text */
vpps_status vpps_comm_abort(vpps_comm *comm, const char *why);
/** Destroys a communicator. An engine that is attached to the group stays so. */
void vpps_comm_destroy(vpps_comm *comm);
/** Makes an engine a rank. All ranks call it, with the same parameters, trainers, weight decay and
 * number of virtual processors. It waits for them, and gives this engine the numbers of rank 0. In
 * a group of one rank it changes nothing. \return VPPS_ERR_RANK if a rank differs; the text says in
 * what. Nothing has changed, and the engine is not attached */
vpps_status vpps_comm_attach(vpps_comm *comm, vpps_engine *engine, vpps_reduction reduction);
/** The engine trains alone from now on. Other ranks that go on miss it. Closing an attached engine
 * ends the group. */
vpps_status vpps_comm_detach(vpps_engine *engine);
/** Says how many examples the rank's batches have from now on, for VPPS_AVERAGE; 1 at first. It
 * must be finite and not negative. */
vpps_status vpps_comm_count(vpps_engine *engine, float examples);
/** For a rank that has no batch left: it takes part in the calls of the others with nothing, until
 * all ranks have called this function. Batches that fail on other ranks are not its errors. */
vpps_status vpps_comm_join(vpps_engine *engine);
/** The sum of the latest losses of all ranks; those in vpps_comm_join() add nothing. Without a
 * group it is vpps_sync_latest_loss(). VPPS_ERR_STATE: no rank has a loss. */
vpps_status vpps_global_loss(vpps_handle *handle, float *loss);

/* ---- checkpoints ---------------------------------------------------------- */

/** A file that was opened and checked. A checkpoint has all that training goes on from: values,
 * gradients that are pending, what rules remember, trainers' options and counts, weight decay, the
 * seed and the counters behind random operations, the losses that vpps_fb() has yet to tell, and
 * blobs of the program's own. Training that goes on from it gives the same bits as if it had not
 * stopped: on the same device and CPU variant, by the same version of the library, with the same
 * plan and the same further calls. docs/CHECKPOINT.md describes the file. */
typedef struct vpps_checkpoint vpps_checkpoint;

/** Named bytes of the program's own, such as its place in the training data. */
typedef struct vpps_blob {
  const char *name; /**< unique in its checkpoint */
  const void *data; /**< size bytes; may be NULL if size is 0 */
  uint64_t size;    /**< bytes, less than 2^40 */
} vpps_blob;

/** What is saved, and what it is loaded to. Parameters correspond by their order in ids, trainers
 * and handles by theirs; names, dims, rules and collections must be the same. ids must have all
 * parameters of the trainers. Graphs are not saved: save and load between two of them. Start from
 * VPPS_CHECKPOINT_CONTENTS_INIT. */
typedef struct vpps_checkpoint_contents {
  uint32_t struct_size;          /**< bytes of this struct, set by the macro */
  const uint32_t *ids;           /**< the parameters' numbers, each once */
  size_t id_count;               /**< how many */
  vpps_trainer *const *trainers; /**< each once */
  size_t trainer_count;          /**< how many */
  vpps_handle *const *handles;   /**< whose vpps_fb() goes on telling losses; each once */
  size_t handle_count;           /**< how many */
  const vpps_blob *blobs;        /**< vpps_checkpoint_save() only; each name once */
  size_t blob_count;             /**< how many */
} vpps_checkpoint_contents;
/** Empty contents. */
#define VPPS_CHECKPOINT_CONTENTS_INIT                                                              \
  { sizeof(vpps_checkpoint_contents), 0, 0, 0, 0, 0, 0, 0, 0 }

/** Writes a checkpoint to the file path. Waits. If a batch in flight failed, the call says so and
 * writes nothing; the next call saves what was before that batch. The new file replaces one of the
 * same name as a whole, by way of path.tmp in the same folder: a kill, a full disk or a power
 * failure leaves the old file or the new one. Other calls of the engine wait until the file is
 * stored. VPPS_ERR_IO names the file and the reason. */
vpps_status vpps_checkpoint_save(vpps_engine *engine, const char *path,
                                 const vpps_checkpoint_contents *contents);
/** Opens a checkpoint and checks its version and all of its checksums. Takes memory for its
 * sections' places only.
 * \param path the file, which stays open until vpps_checkpoint_close()
 * \param checkpoint receives the checkpoint. The caller owns it: vpps_checkpoint_close()
 * \return VPPS_ERR_IO names file, byte and reason */
vpps_status vpps_checkpoint_open(const char *path, vpps_checkpoint **checkpoint);
/** Copies the blob of a name, if it has at most capacity bytes. data may be NULL with a capacity of
 * 0. size receives how many bytes the blob has. VPPS_ERR_ARGUMENT: there is no such blob. */
vpps_status vpps_checkpoint_blob(vpps_checkpoint *checkpoint, const char *name, void *data,
                                 uint64_t capacity, uint64_t *size);
/** Makes everything as it was when the checkpoint was saved. Reads and checks all of it before it
 * changes anything. Needs host memory of the file's size. Values of graphs from before are stale.
 * Waits, as vpps_checkpoint_save() does.
 * \return VPPS_ERR_STATE if the contents are others than those that were saved; VPPS_ERR_IO if the
 *     file is damaged */
vpps_status vpps_checkpoint_load(vpps_checkpoint *checkpoint, vpps_engine *engine,
                                 const vpps_checkpoint_contents *contents);
/** Closes a checkpoint's file. */
void vpps_checkpoint_close(vpps_checkpoint *checkpoint);

/* ---- looking inside ----------------------------------------------------- */

/** Where each matrix lives and why, as text. Writes at most size bytes, always terminated; needed
 * (may be NULL) receives the bytes that the whole text takes. text may be NULL with a size of 0. */
vpps_status vpps_plan_report(vpps_handle *handle, char *text, size_t size, size_t *needed);
/** The script of the last call, disassembled. text, size and needed: as in vpps_plan_report(). */
vpps_status vpps_script_dump(vpps_engine *engine, char *text, size_t size, size_t *needed);

/** What takes how much memory, as a table: on the device, in pinned and in other host memory, with
 * the bytes in use. Waits for scripts, not for batches. text, size and needed: as in
 * vpps_plan_report(). */
vpps_status vpps_memory_report(vpps_engine *engine, char *text, size_t size, size_t *needed);

/** Waits for all batches and completes the file of VPPS_TRACE, which otherwise lags by up to 0.1 s
 * until the engine is closed. VPPS_ERR_IO: not all could be written; the text names the file. */
vpps_status vpps_flush_timeline(vpps_engine *engine);

/** A part of the processors' time, in nanoseconds, summed over launches. */
typedef struct vpps_part_time {
  uint64_t mean_ns; /**< the mean of a launch's processors */
  uint64_t max_ns;  /**< the processor of each launch that has most */
} vpps_part_time;

/** Where time went since the engine was opened: nanoseconds, summed. Threads of the host, and the
 * device, work at the same time: their times do not add up to the time that passed. The members
 * from launches on need VPPS_PROFILE=1. */
typedef struct vpps_times {
  uint32_t struct_size; /**< bytes of this struct, set by the macro */
  uint32_t processors;  /**< of the last launch with clocks; 0: VPPS_PROFILE is not set */
  /** Host: from a graph's creation, or the last call on it, to the call that brings nodes. */
  uint64_t record_ns;
  uint64_t decode_ns;   /**< host: reading and checking nodes */
  uint64_t schedule_ns; /**< host: making scripts */
  uint64_t launch_ns;   /**< host: handing scripts to a GPU, waiting for a free slot included */
  uint64_t wait_ns;     /**< host: in calls, waiting for scripts and results */
  /** A GPU, with VPPS_TIMES=1 or VPPS_PROFILE=1: waiting for the script's copy, which begins while
   * the launch before runs. */
  uint64_t copy_ns;
  uint64_t kernel_ns;       /**< device: the kernel; on a GPU as copy_ns */
  uint64_t launches;        /**< launches with clocks, those for single values included */
  vpps_part_time start;     /**< taking matrices into registers */
  vpps_part_time forward;   /**< values */
  vpps_part_time backward;  /**< gradients of nodes */
  vpps_part_time gradients; /**< gradients of parameters */
  vpps_part_time update;    /**< norm, clipping, update */
  vpps_part_time fetch;     /**< between instructions: fetching and decoding the script */
  vpps_part_time waiting;   /**< for other processors */
  vpps_part_time idle;      /**< of the launch, before a processor's begin and after its end */
  vpps_part_time busy;      /**< all but the last two */
  uint64_t loaded_bytes;    /**< of matrices, taken into registers; 0 on the CPU */
  uint64_t updated_bytes;   /**< of parameters, read by updates */
  uint64_t streamed_bytes;  /**< of parameters, read by other instructions, again for each use */
} vpps_times;
/** A vpps_times to be filled. */
#define VPPS_TIMES_INIT                                                                            \
  {                                                                                                \
    sizeof(vpps_times), 0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, \
        {0, 0}, {0, 0}, {0, 0}, 0, 0, 0                                                            \
  }
/** Copies the times to times, which begins as VPPS_TIMES_INIT. Waits. */
vpps_status vpps_engine_times(vpps_engine *engine, vpps_times *times);
/** What the clocks saw, as CSV: a row for each phase and kind of instruction, with how many there
 * were on all processors, and their time as in vpps_part_time. Without VPPS_PROFILE=1 only the line
 * with the columns' names. Waits. text, size and needed: as in vpps_plan_report(). */
vpps_status vpps_clock_table(vpps_engine *engine, char *text, size_t size, size_t *needed);

#ifdef __cplusplus
}
#endif
#endif
