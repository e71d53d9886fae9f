/* libvpps: train dynamic neural networks with the weights resident on the chip.
 *
 * This header is the manual of the C ABI. A C++ program uses vpps/vpps.hpp and
 * dynet/dynet.h instead, which are built on it.
 *
 * CONVENTIONS
 *  - Every function returns a vpps_status; 0 is success. After a failure
 *    vpps_last_error() says in one line what was wrong, why, and what to do; it
 *    belongs to the calling thread and holds until that thread's next failure.
 *  - A failed call changes nothing: parameters, graphs and handles are as before. What it would
 * have written is as before, too, but for a pointer to a new object, which is NULL.
 *  - Option structs begin with struct_size; start from their _INIT macro. The size of an older
 *    version's struct, which ends before one of today's members, is accepted.
 *  - Engines, graphs, trainers and handles are numbers, not addresses, and none is given out twice.
 *    A call on an object of another type, or on one that was destroyed or never made, is
 *    VPPS_ERR_ARGUMENT.
 *  - Destroy functions accept NULL. They return nothing: one that fails sets vpps_last_error() and
 *    destroys nothing. It fails like other calls, and while a call of another thread uses the
 * object. A trainer that a handle uses lives on for it. Closing an engine waits for the calls on
 * its graphs, trainers and handles; later ones are VPPS_ERR_STATE, but they can be destroyed still.
 *  - Tensors are float32, column-major, the batch slowest: element (i,j) of batch
 *    element b of an R x C tensor is at i + R*(j + C*b).
 *  - Pointers passed in are read before the call returns and not kept, unless the
 *    function says otherwise. Lengths count elements, not bytes.
 *
 * THREADS AND BLOCKING
 *  An engine may be called from any thread, one call at a time: a second call
 *  waits for the first. A graph's words are recorded by one thread. Only vpps_fb
 *  returns before its work is done; every call that reads a value or a parameter
 *  waits for the vpps_fb calls before it.
 *
 * FAILURES
 *  Memory that runs out, on the host or a GPU, is VPPS_ERR_MEMORY: everything is as before the
 *  call, and calls that need less work. A fault of the device that CUDA does not recover from is
 *  VPPS_ERR_DEVICE from the call that notices it, and from all later ones of the engine that need
 *  it; other engines, and the process, go on. Values of parameters and factors of collections then
 *  read as of the last snapshot (snapshot_batches), if there is one.
 *  A script that cannot be made - of a batch of more than 16 GiB of activations, or by a defect of
 *  the library - is an error of its batch alone.
 *  Three things still end the process. The runtime of Go, in which the library is written, ends it
 *  if its heap cannot grow or a thread cannot be started; before work that grows with a graph the
 *  library asks the system for that memory, so that only what others of the process take meanwhile
 *  can bring this about. The loader ends it if the library's own data find no room. And the kernel
 *  kills a process of a machine, or of a container, that promised more memory than it has.
 *
 * LIVING IN THE HOST'S PROCESS
 *  No exception, panic or exit crosses this interface. Loading the library starts
 *  nothing; its first call starts threads. fork() before the first call is allowed:
 *  parent and child may both use the library. After it every call in the child
 *  returns VPPS_ERR_FORKED: fork earlier, or exec. dlclose() keeps the library in memory;
 *  opening it again continues where it was. The process may exit with batches in
 *  flight. Threads may come and go.
 *  Signal handlers of the host stay in place, and those that were there before the
 *  first call are given SA_ONSTACK; handlers installed later need it. The library's
 *  threads take none of the host's signals, only SIGPROF and SIGCHLD. A thread that calls
 *  without an alternate signal stack (sigaltstack) is given one, at each call anew.
 *  Rounding mode, traps and flush-to-zero of the calling thread change no result, and are
 *  restored by every call.
 *  The caller's current CUDA context is left as found; the primary context of the device
 *  is used, and vpps_engine_close frees what the engine has there. CUDA_VISIBLE_DEVICES
 *  selects and renumbers the devices, as for every CUDA program.
 *
 * ENVIRONMENT, as it is at the first call. What is malformed or unknown is said once on standard
 * error, when an engine is opened, and ignored. An unknown device or plan, or a timeline's file
 * that cannot be made, is that call's error. A process with more rights than its user, as a
 * setuid program has, reads none of these and keeps no kernels.
 *  VPPS_DEVICE=name     the device where the program names none: the C++ headers read it. One
 *                       that is malformed is VPPS_ERR_ARGUMENT where the options name none
 *  VPPS_THREADS=N       threads of the CPU executor, where the options name none
 *  VPPS_WAIT_SECONDS=S  how long a virtual processor waits for another (10)
 *  VPPS_CACHE_DIR=path  where compiled kernels are kept
 *  VPPS_SNAPSHOT_BATCHES=N   updates from one snapshot of the parameters to the next,
 *                       where the options name none
 *  VPPS_NVRTC, VPPS_LIBCUDA, VPPS_CUBLAS=file   libraries to take instead of searching
 *  VPPS_PLAN=rpw=N,ctas=N,copies=N,processors=N   pins rows a warp, processors on an SM
 *                       (1 or 2), most copies of a matrix in registers that are left over
 *                       and SMs of a GPU plan, each of them optional; a plan whose kernel
 *                       spills is refused, where otherwise the next best one is taken
 *  VPPS_PLAN=profile=1  the first batches of vpps_fb run under every plan that fits, some
 *                       under each, and under one with slices (below), and the fastest
 *                       stays; it is remembered beside the kernels for these matrices, this
 *                       device and version. All are as right, but sums are rounded
 *                       differently
 *  VPPS_PLAN=registers=N,shared=N,partials=N   bounds a thread's registers for weights,
 *                       a processor's KB of shared memory, and the floats of a transposed
 *                       product's partial results, beyond which it reads its matrix
 *  VPPS_PLAN=library=N  from N products by a matrix beyond the registers in a batch on
 *                       (256), cuBLAS forms its gradient, if it is there, and the batch
 *                       takes two launches; 0: never
 *  VPPS_PLAN=slices=1   matrices of as many rows lie alike on groups of processors,
 *                       where that fits: an experiment
 *  VPPS_PLAN=columns=N,tensor=1   several processors share a row, each with N of its
 *                       columns; tensor cores form the products of blocks of 128 or 256
 *                       columns, an even number of rows a warp up to 8, of numbers split
 *                       in two: experiments, too
 *  VPPS_PLAN=transposed=atomics   on either device, holders of a matrix add a transposed
 *                       product up with atomics, instead of leaving partial results that
 *                       are added up in one order: results then depend on timing
 *  VPPS_MERGE=0         vpps_fb evaluates equal nodes of a large batch each by itself: by default
 *                       sentences share what they have in common, a word say, if that
 *                       is a sixteenth of the nodes; sums are then rounded differently
 *  VPPS_TIMES=1         measures the device's time for vpps_engine_statistics and
 *                       vpps_engine_times
 *  VPPS_CLOCKS=1        on either device, has every processor note how long which
 *                       instructions take, for vpps_engine_times. On a GPU it is
 *                       another, slower kernel; results are the same
 *  VPPS_TRACE=file      writes a timeline of the program, of the workers that make
 *                       scripts and of the device: trace events, which ui.perfetto.dev
 *                       shows; at most 256 MiB. A file that cannot be made is
 *                       VPPS_ERR_IO from vpps_engine_open
 *  VPPS_VERIFY=1        proves every script sound on the host before it runs
 *  VPPS_CHECK=1         on either device, holds every operand of an instruction
 *                       against the script's tensors before it runs, and fills
 *                       reused memory with NaN; a violation is VPPS_ERR_DEVICE
 *                       naming processor, instruction, operand and address.
 *                       On a GPU it is another kernel, and batches run one by one
 */
#ifndef VPPS_H
#define VPPS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VPPS_VERSION_MAJOR 0
#define VPPS_VERSION_MINOR 1
#define VPPS_VERSION_PATCH 0

/* The version of the wire format in vpps_words. */
#define VPPS_WIRE_VERSION 1u

typedef enum vpps_status {
  VPPS_OK = 0,
  VPPS_ERR_ARGUMENT = 1,    /* a wrong argument of the call itself */
  VPPS_ERR_GRAPH = 2,       /* the graph: a bad index, shape, operation */
  VPPS_ERR_STATE = 3,       /* the call does not fit what came before */
  VPPS_ERR_NUMERIC = 4,     /* NaN or infinity in a gradient norm or loss */
  VPPS_ERR_DEVICE = 5,      /* the device or its driver failed */
  VPPS_ERR_MEMORY = 6,      /* memory exhausted */
  VPPS_ERR_IO = 7,          /* a file */
  VPPS_ERR_UNSUPPORTED = 8, /* not available on this machine or in this build */
  VPPS_ERR_FORKED = 9,      /* in a child forked after the first call */
  VPPS_ERR_INTERNAL = 10    /* a defect of libvpps; the text says where */
} vpps_status;

typedef struct vpps_engine vpps_engine;   /* one per device */
typedef struct vpps_graph vpps_graph;     /* one computation graph */
typedef struct vpps_trainer vpps_trainer; /* an update rule and its parameters */
typedef struct vpps_handle vpps_handle;   /* a model planned for a device */

/* "0.1.0". Static storage. */
const char *vpps_version(void);
/* One line: version, build tags, kernel variants. Static storage. */
const char *vpps_build_info(void);
/* The calling thread's last failure, "" if none. Valid until its next failure. */
const char *vpps_last_error(void);

/* A tensor's dimensions: nd of them in d, and the batch size bd. */
typedef struct vpps_dim {
  uint32_t nd, bd, d[7];
} vpps_dim;

/* ---- front-ends --------------------------------------------------------- */

/* A front-end defines the DyNet classes that a program is compiled against. There are two, and
 * a process can use only one: they give the same names to different classes. */
#define VPPS_FRONTEND_BUNDLED "libvpps's own DyNet headers"
#define VPPS_FRONTEND_INSTALLED "an installed DyNet"

/* Says which front-end this process uses; one does so before it opens an engine. Once said it
 * stays; the same again is VPPS_OK, another VPPS_ERR_STATE. Programs in C need not call it.
 * kind: one of the texts above, or one of at most 100 bytes that names a front-end of your own. */
vpps_status vpps_frontend(const char *kind);

/* ---- engines ------------------------------------------------------------ */

typedef struct vpps_engine_options {
  uint32_t struct_size;
  const char *device; /* "cpu", "cuda", "cuda:1", or "auto" (NULL): the first GPU, else the CPU */
  uint32_t threads;   /* CPU executor: threads, up to 1024; 0: VPPS_THREADS, else the machine's */
  /* CPU executor: virtual processors, up to 1024; 0: one per thread, fewer if small */
  uint32_t processors;
  uint32_t seed; /* of random operations; 0: drawn from the system */
  /* The parameters' values are copied to host memory every so many updates, for the case that the
   * device is lost. 0: VPPS_SNAPSHOT_BATCHES, else never. A copy waits for the batches before. */
  uint32_t snapshot_batches;
  /* How a GPU's plans are chosen; NULL: VPPS_PLAN, whose form this has. The CPU has one,
   * of which only transposed is chosen. */
  const char *plan;
  const char *trace; /* the file of a timeline; NULL: VPPS_TRACE, else none */
  uint32_t times;    /* 1: measure the device's time; 0: VPPS_TIMES */
} vpps_engine_options;
#define VPPS_ENGINE_OPTIONS_INIT                                                                   \
  { sizeof(vpps_engine_options), 0, 0, 0, 0, 0, 0, 0, 0 }

/* Opens the engine of a device; opening the same device again returns the same
 * engine (its options stay those of the first call). Release with vpps_engine_close, as often as it
 * was opened: the last one ends it. */
vpps_status vpps_engine_open(const vpps_engine_options *options, vpps_engine **engine);
void vpps_engine_close(vpps_engine *engine);
/* What runs: "cpu: 2 threads, 2 processors, x86-64-v3" or "cuda:0: NVIDIA H200, ...". If "auto"
 * took the CPU though there is a GPU, what that lacks: "cpu: ...; not device cuda:0: no usable
 * NVRTC ...". Writes at most size bytes, always terminated. */
vpps_status vpps_engine_describe(vpps_engine *engine, char *text, size_t size);
/* Seeds the random operations from now on: the same seed and the same graphs after it draw the same
 * numbers again. */
vpps_status vpps_engine_seed(vpps_engine *engine, uint32_t seed);

typedef struct vpps_statistics {
  uint32_t struct_size;
  uint64_t batches;  /* vpps_fb calls that have finished */
  uint64_t launches; /* kernel launches (CPU: script executions) */
  uint64_t copies_to_device;
  uint64_t nodes;                           /* graph nodes decoded */
  uint64_t decode_ns, plan_ns, schedule_ns; /* host time, summed */
  uint64_t execute_ns;                      /* device time, summed */
  uint64_t script_words;                    /* of the last script */
} vpps_statistics;
#define VPPS_STATISTICS_INIT                                                                       \
  { sizeof(vpps_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0 }
vpps_status vpps_engine_statistics(vpps_engine *engine, vpps_statistics *statistics);

/* ---- parameters --------------------------------------------------------- */

/* A collection carries the weight decay: one factor, applied whenever one of its
 * parameters is read by a graph, and multiplied by 1-lambda at each update. */
vpps_status vpps_collection_create(vpps_engine *engine, float lambda, uint32_t *collection);
vpps_status vpps_collection_set_lambda(vpps_engine *engine, uint32_t collection, float lambda);
/* The present factor, 1 at first. Waits for the vpps_fb calls before it. */
vpps_status vpps_collection_factor(vpps_engine *engine, uint32_t collection, float *factor);

#define VPPS_PARAMETER_LOOKUP 1u /* a table: the last dimension counts the rows */

/* Creates a parameter of dim (bd = 1) in a collection, with values[size] or, if
 * values is NULL, zeros. Its id is valid in this engine's graphs. */
vpps_status vpps_parameter_create(vpps_engine *engine, uint32_t collection, const char *name,
                                  const vpps_dim *dim, uint32_t flags, const float *values,
                                  uint32_t *id);
/* Frees the parameter, whose memory later ones use. Graphs that mention it fail with
 * VPPS_ERR_GRAPH. Its id is not used again. */
vpps_status vpps_parameter_destroy(vpps_engine *engine, uint32_t id);

typedef enum vpps_part { VPPS_VALUES = 0, VPPS_GRADIENT = 1 } vpps_part;
/* Copies count floats from element offset on. Values are stored values, without the
 * weight decay factor. A gradient that was never formed reads 0. */
vpps_status vpps_parameter_read(vpps_engine *engine, uint32_t id, vpps_part part, uint64_t offset,
                                uint64_t count, float *to);
/* Whole rows of a table, but not all, written to the gradient count as looked up: an update that
 * is sparse moves only such rows. */
vpps_status vpps_parameter_write(vpps_engine *engine, uint32_t id, vpps_part part, uint64_t offset,
                                 uint64_t count, const float *from);
/* Multiplies every element by factor (0 sets zeros). */
vpps_status vpps_parameter_scale(vpps_engine *engine, uint32_t id, vpps_part part, float factor);
/* Where the program reads and writes the part itself, valid until the parameter is destroyed or the
 * engine closed. From then on the parameter is exposed: what the program writes there holds from
 * the engine's next call on that uses it, and what calls change is there before they return, so
 * vpps_fb waits for its batch. On the CPU values are the engine's own and cost nothing. Anything
 * else is a copy, which every call compares: about 1 ms for a table of 20 MB. */
vpps_status vpps_parameter_expose(vpps_engine *engine, uint32_t id, vpps_part part, float **values);
/* Whether trainers change it (1 at first). */
vpps_status vpps_parameter_set_updated(vpps_engine *engine, uint32_t id, int updated);
/* Rows of a table whose gradient is pending, ascending: writes up to capacity of them to
 * rows and their number to count. all = 1: the table as a whole has a gradient. */
vpps_status vpps_parameter_touched(vpps_engine *engine, uint32_t id, uint32_t *rows,
                                   uint64_t capacity, uint64_t *count, int *all);
/* The parameter's values themselves, where the device computes in host memory (the CPU); NULL
 * elsewhere. Waits. They are the engine's, until it closes or the parameter is destroyed, and not
 * to be touched while a batch of vpps_fb is in flight. After writing there: vpps_parameter_write of
 * any of them, so that graphs do not take values evaluated before for new ones. */
vpps_status vpps_parameter_memory(vpps_engine *engine, uint32_t id, float **values);
/* share = 1: gives the program the parameter's gradient itself, where the device computes in host
 * memory (the CPU); NULL elsewhere. Waits. The memory is valid as long as that of the values. What
 * the program writes there counts for the next vpps_backward, which adds to it, and vpps_update,
 * which leaves zeros. vpps_fb is VPPS_ERR_STATE meanwhile. share = 0: the program no longer uses
 * the memory; the gradient stays. */
vpps_status vpps_parameter_gradient_memory(vpps_engine *engine, uint32_t id, int share,
                                           float **gradient);
/* Of a table whose gradient's memory the program has: only these rows may be other than zero there
 * (all = 1: any), and an update that is sparse moves only them. Call it after writing rows or
 * setting them to zero. */
vpps_status vpps_parameter_set_touched(vpps_engine *engine, uint32_t id, const uint32_t *rows,
                                       uint64_t count, int all);

/* ---- graphs ------------------------------------------------------------- */

vpps_status vpps_graph_create(vpps_engine *engine, vpps_graph **graph);
/* The graph may be destroyed while a vpps_fb over it is in flight. */
void vpps_graph_destroy(vpps_graph *graph);

/* What a call adds to the graph, in the wire format.
 *
 * nodes: for each node
 *     op | dim_id << 8      op: bridge/ops; dim_id: an index into dims
 *     [count]               only if the operation is variadic
 *     argument indices      absolute, each smaller than the node's own index
 *     attribute words       as many as the operation has
 * dims: the dim table, append-only.
 * inputs: ALL input words of the graph so far: data (float bits), row numbers, labels.
 *     Attribute words of kind offset index it. They are read anew at every call that
 *     evaluates the nodes concerned, so a program may change them between calls.
 */
typedef struct vpps_words {
  uint32_t version;      /* VPPS_WIRE_VERSION */
  const uint32_t *nodes; /* new nodes only */
  size_t node_words;
  uint32_t node_count;
  const vpps_dim *dims; /* new dims only */
  size_t dim_count;
  const uint32_t *inputs; /* all */
  size_t input_words;
} vpps_words;

/* Each of the calls below first appends words (NULL: nothing new). If the call fails, for
 * whatever reason, nothing is appended: the words can be given again. nodes, dims and inputs
 * may be NULL where their length is 0. */

/* Evaluates nodes up to and including node. restart = 1 (DyNet's forward): invalidates
 * and evaluates all nodes from 0, reading inputs and parameters anew and redrawing random
 * nodes; 0 (incremental_forward): goes on from the first node not yet evaluated. */
vpps_status vpps_forward(vpps_graph *graph, const vpps_words *words, uint32_t node, int restart);
/* Copies the value of node (count = its dim's size), evaluating what is missing. */
vpps_status vpps_value(vpps_graph *graph, const vpps_words *words, uint32_t node, float *to,
                       size_t count);
/* Adds the gradients of the scalar node to the parameters' gradients, evaluating what
 * is missing first. full = 1: also nodes that no parameter feeds. VPPS_ERR_NUMERIC: the value of
 * node is NaN or infinite; the text says which node's was so first, as that of vpps_fb does, and
 * gradients are as before. */
vpps_status vpps_backward(vpps_graph *graph, const vpps_words *words, uint32_t node, int full);
/* Copies d(loss)/d(node) of the last vpps_backward. */
vpps_status vpps_gradient(vpps_graph *graph, uint32_t node, float *to, size_t count);
/* Drops nodes from node on; values of the nodes before it stay. */
vpps_status vpps_graph_truncate(vpps_graph *graph, uint32_t node);
/* Nodes from node on count as not evaluated. */
vpps_status vpps_graph_invalidate(vpps_graph *graph, uint32_t node);

/* ---- training ----------------------------------------------------------- */

/* DyNet's trainers: DyNet's default of the learning rate, and what else a rule reads. A default of
 * epsilon is given where it is not that of VPPS_TRAINER_OPTIONS_INIT. */
typedef enum vpps_rule {
  VPPS_RULE_SGD = 0,      /* SimpleSGD and CyclicalSGD 0.1 */
  VPPS_RULE_MOMENTUM = 1, /* MomentumSGD 0.01: momentum */
  VPPS_RULE_ADAGRAD = 2,  /* Adagrad 0.1: epsilon 1e-20 */
  VPPS_RULE_ADADELTA = 3, /* Adadelta: rho, epsilon 1e-6; not learning_rate */
  VPPS_RULE_RMSPROP = 4,  /* RMSProp 0.1: rho, epsilon 1e-20 */
  VPPS_RULE_ADAM = 5,     /* Adam 0.001: beta_1, beta_2, epsilon 1e-8 */
  VPPS_RULE_AMSGRAD = 6,  /* Amsgrad 0.001: as Adam */
  VPPS_RULE_EG = 7        /* EG 0.1: momentum; values must be positive */
} vpps_rule;

/* Rates and epsilon are finite and not negative, momentum, rho and the betas in [0, 1); else
 * VPPS_ERR_ARGUMENT. What a rule does not read is not looked at. */
typedef struct vpps_trainer_options {
  uint32_t struct_size;
  uint32_t rule; /* vpps_rule */
  float learning_rate;
  int clipping;         /* scale gradients down to clip_threshold by their global norm */
  float clip_threshold; /* above 0 */
  int sparse;           /* update only the touched rows of tables */
  uint32_t collection;  /* whose weight decay the updates advance */
  float momentum, rho, epsilon, beta_1, beta_2; /* of the rules that have them */
} vpps_trainer_options;
/* DyNet's SimpleSGDTrainer. */
#define VPPS_TRAINER_OPTIONS_INIT                                                                  \
  {                                                                                                \
    sizeof(vpps_trainer_options), VPPS_RULE_SGD, 0.1f, 1, 5.0f, 1, 0, 0.9f, 0.95f, 1e-8f, 0.9f,    \
        0.999f                                                                                     \
  }

/* ids: the parameters to be updated, in order, each once. Several trainers may have a parameter:
 * each remembers for itself, and the one that updates first applies the gradient and clears it. */
vpps_status vpps_trainer_create(vpps_engine *engine, const vpps_trainer_options *options,
                                const uint32_t *ids, size_t count, vpps_trainer **trainer);
/* From the next update on. The rule must be the one that the trainer was made with. */
vpps_status vpps_trainer_set(vpps_trainer *trainer, const vpps_trainer_options *options);
/* Adds parameters made since. */
vpps_status vpps_trainer_add(vpps_trainer *trainer, const uint32_t *ids, size_t count);
/* The rule forgets what it remembers of all parameters (DyNet's restart): momentum, averages. The
 * count of updates, which Adam's correction follows, goes on. Waits. */
vpps_status vpps_trainer_restart(vpps_trainer *trainer);
/* All that the rule remembers of a parameter, count floats: vectors as long as it, one after the
 * other. Momentum and EG: the velocity. Adagrad: the sum of squares. Adadelta: the averages of
 * squares of gradients, of steps. RMSProp: that of gradients. Adam: the averages of gradients, of
 * their squares. AMSGrad: these, and the largest of the latter. SGD: nothing. Waits. */
vpps_status vpps_trainer_read_state(vpps_trainer *trainer, uint32_t id, uint64_t count, float *to);
vpps_status vpps_trainer_write_state(vpps_trainer *trainer, uint32_t id, uint64_t count,
                                     const float *from);
/* The count of updates, which Adam's correction follows; at most 2^53 can be set. Waits. */
vpps_status vpps_trainer_updates(vpps_trainer *trainer, uint64_t *updates);
vpps_status vpps_trainer_set_updates(vpps_trainer *trainer, uint64_t updates);
/* Applies the gradients and clears them (DyNet's update). VPPS_ERR_NUMERIC: the norm is not
 * finite, nothing was changed; the text names a parameter. Before the next vpps_backward set the
 * gradients to zero, by vpps_parameter_scale(engine, id, VPPS_GRADIENT, 0). VPPS_ERR_STATE: vpps_fb
 * has applied these parameters' gradients and no vpps_backward came since. clipped (may be NULL): 1
 * if the gradients were scaled down. */
vpps_status vpps_update(vpps_trainer *trainer, int *clipped);
/* A handle that uses the trainer keeps it. One that vpps_handle_trainer gave, and that the program
 * did not make or has destroyed, is refused: it is destroyed with the last handle that uses it. */
void vpps_trainer_destroy(vpps_trainer *trainer);

/* Plans the parameters of a model for the engine's device and compiles (or finds in the
 * cache) its kernel. A cache that cannot be used is no error: the kernel is compiled at every
 * start, and vpps_plan_report says why. ids: each once. trainer NULL: SimpleSGD at its defaults
 * over ids. */
vpps_status vpps_handle_create(vpps_engine *engine, const uint32_t *ids, size_t count,
                               vpps_trainer *trainer, vpps_handle **handle);
void vpps_handle_destroy(vpps_handle *handle);
/* The handle's trainer: its own, or the one given. NULL: an error. */
vpps_trainer *vpps_handle_trainer(vpps_handle *handle);

/* Forward, backward and update of the scalar node in one launch, asynchronously; the graph
 * then counts as not evaluated. stale: the loss of the call before the last (0 for the first
 * two). Errors of the graph come from this call, numeric and device errors from a later one that
 * waits, with the batch's number, once. VPPS_ERR_NUMERIC: the loss or the norm of the gradients is
 * NaN or infinite. The text names the first node in recording order whose value is not finite, its
 * arguments' ranges and, of a leaf, the parameter and row; else the parameter whose gradient is not
 * finite. For that the batch is evaluated once more. A failed batch and those behind it change
 * nothing: parameters, their pending gradients and the weight decay are as before it, but for
 * gradients that no trainer applies, which are zero where these batches added to them. After it the
 * losses count anew. */
vpps_status vpps_fb(vpps_handle *handle, vpps_graph *graph, const vpps_words *words, uint32_t node,
                    float *stale);
/* Nodes of the graph whose values vpps_value reads after the next vpps_fb over the graph;
 * without this only nodes that were evaluated before it have theirs. They may still be
 * among the words to come, but not behind the loss. Calls add up, until a vpps_fb succeeds
 * or the nodes are truncated. Kept values are those from before the update; they last until
 * the graph is evaluated, trained or changed, or a batch fails. */
vpps_status vpps_handle_keep(vpps_handle *handle, vpps_graph *graph, const uint32_t *nodes,
                             size_t count);
/* Waits for all batches; the last one's loss. */
vpps_status vpps_sync_latest_loss(vpps_handle *handle, float *loss);
/* Batches of this handle whose gradients were scaled down. Waits. */
vpps_status vpps_handle_clips(vpps_handle *handle, uint64_t *clips);

/* ---- checkpoints ---------------------------------------------------------- */

/* A checkpoint is a file with all that training goes on from: values, gradients that are pending,
 * what rules remember, trainers' options and counts, weight decay, the seed and the counters behind
 * random operations, the losses that vpps_fb has yet to tell, and blobs of the program's own.
 * Training that goes on from it gives the same bits as if it had not stopped: on the same device
 * and CPU variant, by the same version of the library, with the same plan and the same further
 * calls. docs/CHECKPOINT.md describes the file. */
typedef struct vpps_checkpoint vpps_checkpoint; /* a file that was opened and checked */

/* Named bytes of the program's own: where it is in its data, say. */
typedef struct vpps_blob {
  const char *name;
  const void *data;
  uint64_t size;
} vpps_blob;

/* What is saved, and what it is loaded to. Parameters correspond by their order in ids, trainers
 * and handles by theirs; names, dims, rules and collections must be the same. ids must have all
 * parameters of the trainers. Graphs are not saved: save and load between two of them. */
typedef struct vpps_checkpoint_contents {
  uint32_t struct_size;
  const uint32_t *ids;
  size_t id_count;
  vpps_trainer *const *trainers;
  size_t trainer_count;
  vpps_handle *const *handles; /* whose vpps_fb goes on telling losses */
  size_t handle_count;
  const vpps_blob *blobs; /* vpps_checkpoint_save only */
  size_t blob_count;
} vpps_checkpoint_contents;
#define VPPS_CHECKPOINT_CONTENTS_INIT                                                              \
  { sizeof(vpps_checkpoint_contents), 0, 0, 0, 0, 0, 0, 0, 0 }

/* Writes a checkpoint. Waits; if a batch in flight failed, says so and writes nothing: the next
 * call saves what was before it. The new file takes the place of one of the same name as a whole,
 * by way of path.tmp beside it: a kill, a full disk or a power failure leaves the old or the new
 * one. Other calls of the engine wait until the file is stored. */
vpps_status vpps_checkpoint_save(vpps_engine *engine, const char *path,
                                 const vpps_checkpoint_contents *contents);
/* Opens a checkpoint and checks its version and all of its checksums; VPPS_ERR_IO names file, byte
 * and reason. The file stays open until vpps_checkpoint_close. Takes memory for its sections'
 * places only. */
vpps_status vpps_checkpoint_open(const char *path, vpps_checkpoint **checkpoint);
/* Copies the blob of a name, if it has at most capacity bytes; size: how many it has. data may be
 * NULL with a capacity of 0. VPPS_ERR_ARGUMENT: there is no such blob. */
vpps_status vpps_checkpoint_blob(vpps_checkpoint *checkpoint, const char *name, void *data,
                                 uint64_t capacity, uint64_t *size);
/* Has everything be as it was when the checkpoint was saved. All of it is read and checked before
 * anything is changed: VPPS_ERR_STATE if the contents are others than those that were saved,
 * VPPS_ERR_IO if the file is damaged. Needs host memory of the file's size. Values of graphs from
 * before are stale. Waits, as vpps_checkpoint_save does. */
vpps_status vpps_checkpoint_load(vpps_checkpoint *checkpoint, vpps_engine *engine,
                                 const vpps_checkpoint_contents *contents);
void vpps_checkpoint_close(vpps_checkpoint *checkpoint);

/* ---- looking inside ----------------------------------------------------- */

/* Where each matrix lives and why, as text. Writes at most size bytes, always terminated;
 * needed (may be NULL): the bytes the whole text takes. */
vpps_status vpps_plan_report(vpps_handle *handle, char *text, size_t size, size_t *needed);
/* The script of the last call, disassembled. */
vpps_status vpps_script_dump(vpps_engine *engine, char *text, size_t size, size_t *needed);

/* Waits for all batches and completes the file of VPPS_TRACE, which otherwise is behind by up to
 * 0.1 s until the engine is closed. VPPS_ERR_IO: not all could be written, the text names the file.
 */
vpps_status vpps_flush_timeline(vpps_engine *engine);

/* A part of the processors' time: nanoseconds, summed over launches, of their mean and of that
 * processor of each launch which has most. */
typedef struct vpps_part_time {
  uint64_t mean_ns, max_ns;
} vpps_part_time;

/* Where time went since the engine was opened; nanoseconds, summed. Threads of the host, and the
 * device, work at the same time: their times do not add up to what passed. */
typedef struct vpps_times {
  uint32_t struct_size;
  uint32_t processors; /* of the last launch with clocks; 0: VPPS_CLOCKS is not set */
  /* The host. record: from a graph's creation, or the last call on it, to the call that brings
   * nodes. decode: reading and checking them. schedule: making scripts. launch: handing scripts to
   * a GPU, waiting for a free slot included. wait: in calls, for scripts and results. */
  uint64_t record_ns, decode_ns, schedule_ns, launch_ns, wait_ns;
  /* The device; on a GPU with VPPS_TIMES=1 or VPPS_CLOCKS=1. Waiting for the script's copy, which
   * begins while the launch before runs, and the kernel. */
  uint64_t copy_ns, kernel_ns;
  /* The rest with VPPS_CLOCKS=1, of so many launches, those for single values included. */
  uint64_t launches;
  vpps_part_time start;     /* taking matrices into registers */
  vpps_part_time forward;   /* values */
  vpps_part_time backward;  /* gradients of nodes */
  vpps_part_time gradients; /* gradients of parameters */
  vpps_part_time update;    /* norm, clipping, update */
  vpps_part_time fetch;     /* between instructions: fetching and decoding the script */
  vpps_part_time waiting;   /* for other processors */
  vpps_part_time idle;      /* of the launch, before a processor's begin and behind its end */
  vpps_part_time busy;      /* all but the last two */
  /* Bytes that processors asked memory for: of matrices, taken into registers (0 on the CPU); of
   * parameters, by updates; of parameters, by other instructions, again for each use. */
  uint64_t loaded_bytes, updated_bytes, streamed_bytes;
} vpps_times;
#define VPPS_TIMES_INIT                                                                            \
  {                                                                                                \
    sizeof(vpps_times), 0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, \
        {0, 0}, {0, 0}, {0, 0}, 0, 0, 0                                                            \
  }
/* Waits for all batches. */
vpps_status vpps_engine_times(vpps_engine *engine, vpps_times *times);
/* What the clocks saw, as CSV: a row for each phase and kind of instruction, with how many there
 * were on all processors, and their time as in vpps_part_time. Without VPPS_CLOCKS=1 only the line
 * with the columns' names. Waits for all batches. size and needed as in vpps_plan_report. */
vpps_status vpps_clock_table(vpps_engine *engine, char *text, size_t size, size_t *needed);

#ifdef __cplusplus
}
#endif
#endif
