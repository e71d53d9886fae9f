# make            libvpps.so, the C++ front-end, vpps-info, the examples and benchmarks, into build/; needs
#                 Go >= 1.21 and g++, but no CUDA, no driver and no GPU
# make demo       trains a Tree-LSTM on the sample trees (TREES=dir: on a treebank, ARGS=more flags,
#                 APP=name: another application of cpp_examples/)
# make test       all checks; those that cannot run here are skipped, named with what they need, and counted
# make torture    MINUTES=10, SEED=N: looks for faults at random (test/torture/run); make nightly: for two hours,
#                 with mutants, and on all compilers and systems, and notes the results in test/torture and test/SYSTEMS.md
# make mutants    takes back one mend after the other, which the tests have to find (ONLY="names", MINUTES=20)
# make lint       go vet, staticcheck, clang-format, clang-tidy
# make format     gofmt and clang-format on everything that is not generated
# make golden     compares with recorded results of DyNet: the repository's, or those of DIR=folder
# make compatibility  DYNET_ROOT=dir: writes the tables of docs/COMPATIBILITY.md: errors against DyNet, and DyNet's names
# make profile    packaging/scripts.pgo, by which go build optimises the library
# make reference  build/reference/index.html, the C and C++ reference, from the headers by doxygen
# make abi        test/abi/vpps.abi, the record of the C interface, after additions to include/vpps.h
# make figures    build/figures, a static program that measures and draws, and with it docs/figures from
#                 the CSV files in RESULTS (bench/results)
# make site       build/site/html, a web site of README, docs/ and the reference; needs python3 with venv, and doxygen,
#                 and downloads MkDocs
# make mpi        build/libvpps_mpi.so, the plug-in for MPI, against the mpi.h of MPICC=mpicc; test/mpi/run tries it
# make python     DYNET_ROOT=dir: build/python, the module vpps_dynet for the DyNet that PYTHON=python3 imports; DyNet's
#                 headers are in DYNET_ROOT
# make install    PREFIX=/usr/local, LIBDIR=$(PREFIX)/lib; DESTDIR is honoured; with the plug-in for MPI and the
#                 module for Python, if they have been built; the module's sources in any case
# make uninstall  removes what make install puts there
# make dist       build/dist/libvpps-VERSION-linux-MACHINE.tar.gz, which works wherever it is unpacked, without Go
# make deb        Debian packages of the same files, MAINTAINER="name <address>", into build/dist
# make bare-root  DIST=bookworm, STEPS="archive packages": tries them in a bare Debian (test/bare_root has more steps)
# make clean
# make help       this list

# What cannot go well is said at once.
ifneq ($(words $(CURDIR)),1)
$(error the folder "$(CURDIR)" has a space in its path, which make cannot take: move it)
endif
ifneq ($(or $(word 2,$(PREFIX)),$(word 2,$(LIBDIR)),$(word 2,$(DESTDIR))),)
$(error PREFIX, LIBDIR and DESTDIR must not have a space in them, which make cannot take)
endif
APP  ?= treelstm
APPS := $(filter-out minimal,$(patsubst cpp_examples/%.cc,%,$(wildcard cpp_examples/*.cc)))
ifneq ($(and $(filter demo,$(MAKECMDGOALS)),$(filter-out $(APPS),$(APP))),)
$(error there is no application APP=$(APP): it is one of $(APPS))
endif
GO   ?= go
ifneq ($(filter-out help clean uninstall site bare-root,$(or $(MAKECMDGOALS),all)),)
ifeq ($(shell $(GO) list -m 2>/dev/null),)
$(error this needs $(shell sed -n 's/^go /Go /p' go.mod), or Go 1.21 or newer, which fetches it: $(shell $(GO) list -m 2>&1 | tail -1))
endif
endif

VERSION := $(shell awk '/define VPPS_VERSION_(MAJOR|MINOR|PATCH)/ {v = v d $$3; d = "."} END {print v}' include/vpps.h)
# The SONAME changes with the interface: before 1.0 with the second number, later with the first.
SERIES  := $(shell echo $(VERSION) | sed -E 's/^(0\.[0-9]+|[0-9]+).*/\1/')
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
B       := build

# gorgonia.org/cu must see our cuda.h and nothing of an installed toolkit, and its -lcuda must find
# an empty archive, libcuda.a. Flags from the environment come before those of a package, so ours win.
CET     := $(shell $(CC) -fcf-protection -x c -c /dev/null -o /dev/null 2>/dev/null && echo -fcf-protection)
HARDEN  := -fvisibility=hidden -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 $(CET)
export CGO_CFLAGS   := -O2 -g $(HARDEN) -I$(CURDIR)/gpu/cudaload
export CGO_CXXFLAGS := -O2 -g $(HARDEN)
export CGO_LDFLAGS  := -O2 -g -Wl,--as-needed -L$(CURDIR)/gpu/cudaload
# The build's identity is of its content: Go's own would be of the folder's path too.
# start.ld: Go starts at the first call, not when the library is loaded (capi/start.c).
SOFLAGS := -Wl,--build-id=sha1 -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-soname,libvpps.so.$(SERIES) \
           -Wl,--version-script=$(CURDIR)/packaging/libvpps.map -Wl,-T,$(CURDIR)/packaging/start.ld

CFLAGS   ?= -O2 -g
CXXFLAGS ?= -O2 -g
WARN     := -Wall -Wextra
CPPFLAGS += -Iinclude
DYNET    := -Idynetshim/include -Ibridge/ops
LINK     := -L$(B) -pthread -Wl,-rpath,'$$ORIGIN'

OBJECTS  := $(patsubst dynetshim/src/%.cc,$(B)/dynet/%.o,$(wildcard dynetshim/src/*.cc))
EXAMPLES := $(patsubst cpp_examples/%.cc,$(B)/%,$(wildcard cpp_examples/*.cc)) \
            $(patsubst cpp_examples/%.c,$(B)/%,$(wildcard cpp_examples/*.c))
BENCHES  := $(patsubst bench/%.cc,$(B)/bench/%,$(wildcard bench/*.cc))
# An installed DyNet, for which the adapter is tested: in DYNET_ROOT, an install prefix or a folder of
# sources with build/ in it, or in the usual places. Without one those tests are skipped.
DYNET_ROOT ?=
EIGEN_ROOT ?= /usr/include/eigen3
INSTALLED_INCLUDE := $(firstword $(patsubst %/dynet/param-nodes.h,%,$(wildcard $(if $(DYNET_ROOT),\
                       $(DYNET_ROOT)/include/dynet/param-nodes.h $(DYNET_ROOT)/dynet/param-nodes.h,\
                       /usr/local/include/dynet/param-nodes.h /usr/include/dynet/param-nodes.h))))
INSTALLED_LIB := $(firstword $(patsubst %/libdynet.so,%,$(wildcard $(if $(DYNET_ROOT),\
                   $(foreach d,lib lib64 build/dynet build,$(DYNET_ROOT)/$(d)/libdynet.so),\
                   /usr/local/lib/libdynet.so /usr/lib/libdynet.so))))
# DyNet's Python package, for which the module is made.
PYTHON ?= python3
MODULE := $(addprefix $(B)/python/,libvpps_python.so vpps_dynet.py)
MODULE_SOURCES := $(addprefix python/,build vpps_dynet.cc exported.map vpps_dynet.py) # installed: each user has a DyNet of his own
PORTED := $(patsubst test/port/%.cc,%,$(wildcard test/port/*.cc))
ADAPTERS := $(if $(and $(INSTALLED_INCLUDE),$(INSTALLED_LIB)),$(B)/adapter/words_bundled $(B)/adapter/golden \
              $(addprefix $(B)/adapter/,rate walk rate_dynet) \
              $(patsubst cpp_examples/%.cc,$(B)/adapter/example_%,$(wildcard cpp_examples/*.cc)) \
              $(foreach p,$(PORTED),$(B)/adapter/alone_$p $(B)/adapter/ported_$p) \
              $(patsubst dynetshim/adapter/tests/%.cc,$(B)/adapter/%,$(wildcard dynetshim/adapter/tests/*.cc)))
WITH_PYTHON := $(if $(INSTALLED_INCLUDE),$(if $(shell python/build $(PYTHON) 2>/dev/null),$(MODULE)))
CXXTESTS := $(patsubst dynetshim/tests/%.cc,$(B)/tests/%,$(wildcard dynetshim/tests/*.cc))
HOSTTESTS := $(patsubst test/host/%.c,$(B)/tests/host_%,$(wildcard test/host/*.c))
FAULTTESTS := $(B)/tests/standin_faults $(B)/tests/standin_frontend $(B)/tests/nccl_ranks

.PHONY: environment mpi python torture nightly mutants asan all lib examples tests demo golden compatibility profile abi reference figures site test lint format install uninstall dist deb bare-root clean help
.DELETE_ON_ERROR:
all: lib $(B)/libvpps_dynet.a $(B)/vpps-info examples $(BENCHES)
examples: $(EXAMPLES)
tests: $(B)/torture/calls $(CXXTESTS) $(PORTED:%=$(B)/ported/%) $(HOSTTESTS) $(FAULTTESTS) $(B)/golden $(ADAPTERS) $(WITH_PYTHON) $(addprefix $(B)/standin/,libcuda.so.1 libnvrtc.so.12 libnccl.so.2)

# ---- the shared library --------------------------------------------------------------------------

# Tests that are built alike find the library's packages compiled, the C++ of the kernels included.
GOFLAGS_LIBRARY := -tags=cuda -trimpath -pgo=packaging/scripts.pgo
GOFLAGS_TEST    := $(GOFLAGS_LIBRARY) -buildmode=pie
# go build would know by itself what is out of date, but takes seconds to find that nothing is.
GOSOURCES := $(shell find bridge capi env gpu jit log persist include \( -name '*.go' -o -name '*.c' -o -name '*.cc' \
               -o -name '*.h' \) ! -name '*_test.go') go.mod go.sum packaging/scripts.pgo \
             packaging/libvpps.map packaging/start.ld Makefile
lib: $(B)/libvpps.so
$(B)/libvpps.so: $(GOSOURCES)
	bash test/telling "building libvpps.so" $(GO) build $(GOFLAGS_LIBRARY) -buildvcs=false -buildmode=c-shared \
	    -ldflags "-s -w -buildid= -B none -extldflags '$(SOFLAGS)'" -o $(B)/go/libvpps.so ./capi
	cp $(B)/go/libvpps.so $(B)/libvpps.so.new && mv $(B)/libvpps.so.new $(B)/libvpps.so.$(VERSION) # running programs keep theirs
	ln -sf libvpps.so.$(VERSION) $(B)/libvpps.so.$(SERIES)
	ln -sf libvpps.so.$(SERIES) $@

# ---- the plug-in for MPI, against the installed mpi.h ----------------------------------------------

MPICC ?= mpicc
mpi: $(B)/libvpps_mpi.so $(B)/tests/mpi_ranks $(B)/tests/mpi_model
$(B)/libvpps_mpi.so: mpi/vpps_mpi.c persist/comm/vpps_mpi.h
	@mkdir -p $(@D)
	$(MPICC) -std=c11 -D_GNU_SOURCE $(WARN) $(CFLAGS) -fPIC -shared -fvisibility=hidden -Ipersist/comm $< -o $@ -pthread
$(B)/tests/mpi_ranks: test/mpi/ranks.c test/host/host.h $(B)/libvpps.so
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE $(CPPFLAGS) -Itest/host $(WARN) $(CFLAGS) $< -o $@ $(LINK) -Wl,-rpath,'$$ORIGIN/..' -lvpps $(LDFLAGS)

$(B)/tests/mpi_model: test/mpi/model.cc $(B)/libvpps_dynet.a $(wildcard include/vpps/*.hpp)
	@mkdir -p $(@D)
	$(CXX) -std=c++11 $(CPPFLAGS) $(DYNET) $(WARN) $(CXXFLAGS) $< -o $@ $(LINK) -Wl,-rpath,'$$ORIGIN/..' -lvpps_dynet -lvpps $(LDFLAGS)

# ---- the module for DyNet's Python package -----------------------------------------------------------

python: $(MODULE)
$(B)/python/libvpps_python.so: python/vpps_dynet.cc python/exported.map python/build bridge/ops/ops.h $(wildcard include/*.h include/vpps/*.hpp dynetshim/adapter/vpps/installed/*.hpp) $(B)/libvpps.so
	@mkdir -p $(@D)
	python/build $@ $(PYTHON) "$(INSTALLED_INCLUDE)" $(CXX) $(CPPFLAGS) -isystem $(EIGEN_ROOT) $(WARN) $(CXXFLAGS) $(LDFLAGS)
$(B)/python/vpps_dynet.py: python/vpps_dynet.py
	@mkdir -p $(@D)
	cp $< $@

# ---- the C++ front-end, the examples and the C++ tests --------------------------------------------

$(B)/libvpps_dynet.a: $(OBJECTS)
	rm -f $@
	$(AR) rcs $@ $^

$(B)/dynet/%.o: dynetshim/src/%.cc
	@mkdir -p $(@D)
	$(CXX) -std=c++11 -fPIC -MMD -MP $(CPPFLAGS) $(DYNET) $(WARN) $(CXXFLAGS) -c $< -o $@

CXXPROGRAM = $(CXX) -std=c++11 -MMD -MP -MF $@.d $(CPPFLAGS) $(DYNET) $(WARN) $(CXXFLAGS) $< -o $@ $(LINK) -lvpps_dynet -lvpps $(LDFLAGS)

$(B)/%: cpp_examples/%.cc $(B)/libvpps_dynet.a $(B)/libvpps.so
	$(CXXPROGRAM)

$(B)/%: cpp_examples/%.c $(B)/libvpps.so
	$(CC) -std=c11 -MMD -MP -MF $@.d $(CPPFLAGS) $(WARN) $(CFLAGS) $< -o $@ $(LINK) -lvpps $(LDFLAGS)

INFO = $(CC) -std=c11 $(CPPFLAGS) $(WARN) $(CFLAGS) $< -o $@ -L$(B) -lvpps $(LDFLAGS)
$(B)/vpps-info: info/vpps-info.c $(B)/libvpps.so include/vpps.h
	$(INFO) -Wl,-rpath,'$$ORIGIN'
# The installed one finds the library wherever the tree is moved.
$(B)/installed/vpps-info: info/vpps-info.c $(B)/libvpps.so include/vpps.h FORCE
	@mkdir -p $(@D)
	$(INFO) -Wl,-rpath,'$$ORIGIN/$(shell realpath -m --relative-to=$(PREFIX)/bin $(LIBDIR))'
FORCE:

$(CXXTESTS) $(HOSTTESTS) $(FAULTTESTS) $(BENCHES) $(PORTED:%=$(B)/ported/%): LINK += -Wl,-rpath,'$$ORIGIN/..'
# Tests wait for the library; what they take beside it is the compiler's time.
$(CXXTESTS) $(FAULTTESTS) $(PORTED:%=$(B)/ported/%): private CXXFLAGS += -O0
$(B)/golden.o/%.o: private CXXFLAGS += -O0
$(B)/tests/%: dynetshim/tests/%.cc $(B)/libvpps_dynet.a $(B)/libvpps.so
	@mkdir -p $(@D)
	$(CXXPROGRAM)

# Against an installed DyNet. words has a C ABI of its own, and is compiled both ways.
TO_INSTALLED = $(CXX) -std=c++11 -MMD -MP -MF $@.d $(CPPFLAGS) -Idynetshim/adapter -Idynetshim/tests -Ibridge/ops \
               -isystem $(INSTALLED_INCLUDE) -isystem $(EIGEN_ROOT) $(WARN) $(CXXFLAGS)
INSTALLED = $(TO_INSTALLED) -pthread $< -o $@ -L$(INSTALLED_LIB) -Wl,-rpath,$(INSTALLED_LIB) -ldynet
$(B)/adapter/golden: $(patsubst dynetshim/golden/%.cc,$(B)/adapter/golden.o/%.o,$(wildcard dynetshim/golden/*.cc)) $(B)/libvpps.so
	$(CXX) $(filter %.o,$^) -o $@ $(LINK) -Wl,-rpath,'$$ORIGIN/..' -L$(INSTALLED_LIB) -Wl,-rpath,$(INSTALLED_LIB) -ldynet -lvpps $(LDFLAGS)
$(B)/adapter/golden.o/%.o: dynetshim/golden/%.cc
	@mkdir -p $(@D)
	$(TO_INSTALLED) -c $< -o $@
$(B)/adapter/words: dynetshim/adapter/tests/words.cc
	@mkdir -p $(@D)
	$(INSTALLED) $(LDFLAGS)
$(B)/adapter/words_bundled: dynetshim/adapter/tests/words.cc $(B)/libvpps_dynet.a
	@mkdir -p $(@D)
	$(CXX) -std=c++11 -MMD -MP -MF $@.d $(CPPFLAGS) -Idynetshim/tests $(DYNET) $(WARN) $(CXXFLAGS) $< -o $@ -L$(B) -lvpps_dynet $(LDFLAGS)
THROUGH_ADAPTER = $(INSTALLED) -DVPPS_ADAPTER $(LINK) -Wl,-rpath,'$$ORIGIN/..' -lvpps -ldl $(LDFLAGS)
# With the warnings that a user's own build may have: none is the headers'.
$(B)/adapter/%: dynetshim/adapter/tests/%.cc $(B)/libvpps.so
	@mkdir -p $(@D)
	$(THROUGH_ADAPTER) -Wpedantic -Wshadow -Wold-style-cast
$(B)/adapter/example_%: cpp_examples/%.cc $(B)/libvpps.so
	@mkdir -p $(@D)
	$(THROUGH_ADAPTER)
$(B)/adapter/%: bench/%.cc $(B)/libvpps.so
	@mkdir -p $(@D)
	$(THROUGH_ADAPTER)
# DyNet programs that know nothing of libvpps, and the same after packaging/vpps-port.
$(B)/ported/%.cc: test/port/%.cc packaging/vpps-port
	@mkdir -p $(@D)
	cp $< $@ && packaging/vpps-port --write $@
$(B)/ported/%: $(B)/ported/%.cc $(B)/libvpps_dynet.a $(B)/libvpps.so
	$(CXXPROGRAM)
$(B)/adapter/ported_%: $(B)/ported/%.cc $(B)/libvpps.so
	@mkdir -p $(@D)
	$(THROUGH_ADAPTER)
$(B)/adapter/alone_%: test/port/%.cc
	@mkdir -p $(@D)
	$(INSTALLED) $(LDFLAGS)
.PRECIOUS: $(B)/ported/%.cc
# DyNet alone, for bench/compare_rates.
$(B)/adapter/rate_dynet: bench/rate.cc
	@mkdir -p $(@D)
	$(INSTALLED) $(LDFLAGS)

$(B)/tests/host_%: test/host/%.c $(B)/libvpps.so
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -MMD -MP -MF $@.d $(CPPFLAGS) $(WARN) $(CFLAGS) $< -o $@ $(LINK) $(if $(findstring LOADED_BY_HAND,$(file < $<)),-ldl,-lvpps) $(LDFLAGS)

$(B)/tests/nccl_%: test/nccl/%.c $(B)/libvpps.so
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -Itest/host -MMD -MP -MF $@.d $(CPPFLAGS) $(WARN) $(CFLAGS) $< -o $@ $(LINK) -lvpps -lm $(LDFLAGS)

$(B)/tests/standin_%: test/standin/%.c $(B)/libvpps.so
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -MMD -MP -MF $@.d $(CPPFLAGS) $(WARN) $(CFLAGS) $< -o $@ $(LINK) -lvpps $(LDFLAGS)

$(B)/tests/standin_%: test/standin/%.cc $(B)/libvpps_dynet.a $(B)/libvpps.so
	@mkdir -p $(@D)
	$(CXXPROGRAM)

$(B)/bench/%: bench/%.cc $(B)/libvpps_dynet.a $(B)/libvpps.so
	@mkdir -p $(@D)
	$(CXXPROGRAM)

$(B)/golden: $(patsubst dynetshim/golden/%.cc,$(B)/golden.o/%.o,$(wildcard dynetshim/golden/*.cc)) $(B)/libvpps_dynet.a $(B)/libvpps.so
	$(CXX) $(filter %.o,$^) -o $@ $(LINK) -lvpps_dynet -lvpps $(LDFLAGS)

$(B)/golden.o/%.o: dynetshim/golden/%.cc
	@mkdir -p $(@D)
	$(CXX) -std=c++11 -MMD -MP $(CPPFLAGS) $(DYNET) $(WARN) $(CXXFLAGS) -c $< -o $@

# Stand-ins for the driver, NVRTC and NCCL, for tests on machines without them.
FAKE := gpu/testdata/fakecuda
V2_ONLY := $(if $(filter x86_64,$(shell uname -m)),-DVPPS_V2_ONLY)
MOVE := persist/cuda/standin/move
$(B)/standin/libcuda.so.1: $(FAKE)/all.c $(FAKE)/some.c $(FAKE)/launch.cc $(FAKE)/image.h $(MOVE).cc $(MOVE).h persist/cuda/move.cu $(addprefix jit/kernel/,host.cc cpu_v2.cc cpu_generic.cc) $(wildcard jit/kernel/*.h)
	@mkdir -p $(@D)
	for f in all some; do $(CC) -w -O1 -g -fPIC -Igpu/cudaload -c $(FAKE)/$$f.c -o $(@D)/$$f.o || exit 1; done
	$(CXX) -std=c++14 -O1 -g -fno-exceptions -fPIC -shared $(V2_ONLY) -Ijit/kernel $(WARN) $(filter %.cc,$^) $(@D)/all.o $(@D)/some.o -o $@

$(B)/standin/libnvrtc.so.12: $(FAKE)/nvrtc.c $(FAKE)/image.h
	@mkdir -p $(@D)
	$(CC) -O1 -g -fPIC -shared $(WARN) $< -o $@

$(B)/standin/libnccl.so.2: $(FAKE)/nccl.c
	@mkdir -p $(@D)
	$(CC) -O1 -g -fPIC -shared $(WARN) $< -o $@ -ldl

# The CPU's processors under sanitizers (address and undefined behaviour; thread), for test/run.
$(B)/replay/address: SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
$(B)/replay/thread: SANITIZE := -fsanitize=thread
$(B)/replay/%: $(addprefix jit/kernel/,host.cc cpu_v2.cc cpu_generic.cc) test/replay/replay.cc $(wildcard jit/kernel/*.h)
	@mkdir -p $(@D)
	$(CXX) -std=c++14 -g -O1 -fno-exceptions $(V2_ONLY) -Ijit/kernel $(WARN) $(SANITIZE) $(filter %.cc,$^) -o $@ -pthread

# The GPU's routines on 256 threads of the CPU, for test/run.
$(B)/emulate $(B)/emulate_older: test/emulate/emulate.cc test/emulate/cuda.h $(wildcard jit/kernel/*.h)
	@mkdir -p $(@D)
	$(CXX) -std=c++14 -g -O1 -Ijit/kernel $(if $(findstring older,$@),-DVPPS_PARTS=0 -DVPPS_GEMM_WARPS=4,-DVPPS_CHECK) $(WARN) -Wno-unknown-pragmas -Wno-unused-function -Wno-unused-parameter -Wno-dangling-else $< -o $@ -pthread

# ---- torture: programs that look for faults at random -----------------------------------------------

$(B)/torture/calls: test/torture/calls.c $(B)/libvpps.so
	@mkdir -p $(@D)
	$(CC) -std=c11 -D_GNU_SOURCE -MMD -MP -MF $@.d $(CPPFLAGS) -Ibridge/ops $(WARN) $(CFLAGS) $< -o $@ $(LINK) -Wl,-rpath,'$$ORIGIN/..' -lvpps -lm $(LDFLAGS)

-include $(wildcard $(B)/*.d $(B)/torture/*.d $(B)/dynet/*.d $(B)/tests/*.d $(B)/bench/*.d $(B)/ported/*.d $(B)/golden.o/*.d $(B)/adapter/*.d $(B)/adapter/golden.o/*.d)

# ---- running ---------------------------------------------------------------------------------------

# For go with -tags cuda, without make: the environment, and the flags of the tests.
environment:
	@printf 'export %s\n' 'CGO_CFLAGS="$(CGO_CFLAGS)"' 'CGO_CXXFLAGS="$(CGO_CXXFLAGS)"' 'CGO_LDFLAGS="$(CGO_LDFLAGS)"' 'GOFLAGS_TEST="$(GOFLAGS_TEST)"'

demo: all
	$(B)/$(APP) --demo $(if $(TREES),--trees $(TREES)) $(ARGS)

golden: all tests
	$(if $(DIR),$(GO) run ./dynetshim/golden/convert $(DIR),gzip -dc dynetshim/golden/testdata/*.gz) | $(B)/golden

compatibility: $(B)/adapter/errors
	VPPS_DEVICE=cpu $(B)/adapter/errors --table --dynet-seed 1 >$(B)/errors.md
	awk '/^<!-- errors/ {print; print ""; while ((getline line < "$(B)/errors.md") > 0) print line; skip = 1; next} \
	     /^<!-- end/ {print ""; skip = 0} !skip' docs/COMPATIBILITY.md >$(B)/COMPATIBILITY.md
	cp $(B)/COMPATIBILITY.md docs/COMPATIBILITY.md
	$(GO) run ./dynetshim/compatibility -dynet $(INSTALLED_INCLUDE)/dynet

# Where writing scripts takes its time, by which go build optimises the library.
profile:
	mkdir -p $(B)
	$(GO) test -trimpath ./persist/script -run '^$$' -bench 'Build$$' -benchtime 0.5s -cpuprofile $(abspath $(B))/script.prof -o $(B)/script.test
	$(GO) test -trimpath ./bridge -run '^$$' -bench . -cpuprofile $(abspath $(B))/bridge.prof -o $(B)/bridge.test
	$(GO) tool pprof -proto $(B)/script.prof $(B)/bridge.prof >packaging/scripts.pgo

abi:
	$(GO) run ./test/abi -record

# A name without a description is an error.
DOXYGEN = (cat docs/Doxyfile; echo PROJECT_NUMBER = $(VERSION); echo OUTPUT_DIRECTORY = $(1)) | doxygen -
reference:
	@mkdir -p $(B)
	$(call DOXYGEN,$(B)/reference)

# Measures on machines without Go, and draws on others.
RESULTS ?= bench/results
$(B)/figures: $(wildcard bench/figures/*.go) go.mod go.sum
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -o $@ ./bench/figures

figures: $(B)/figures
	$(B)/figures all --results $(RESULTS) --into docs/figures

# The site's pages are the repository's own files, in the folders that their links expect.
PAGES := README.md CHANGELOG.md LICENSE SECURITY.md docs include cpp_examples bench/journal
site: $(B)/site/venv/done
	rm -rf $(B)/site/pages && mkdir -p $(B)/site/pages/bench
	for p in $(PAGES); do ln -s $(CURDIR)/$$p $(B)/site/pages/$$p || exit 1; done
	$(call DOXYGEN,$(B)/site/pages/reference)
	NO_MKDOCS_2_WARNING=1 $(B)/site/venv/bin/mkdocs build --quiet --strict -f docs/site/mkdocs.yml
	@echo "$(CURDIR)/$(B)/site/html/index.html"
$(B)/site/venv/done: docs/site/requirements.txt
	python3 -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

# Compilers by default are not told: to go, a compiler by its name is another one, for which it builds all anew.
test: all tests $(B)/torture/persist.test
	GO="$(GO)" GOFLAGS_TEST="$(GOFLAGS_TEST)" PYTHON="$(PYTHON)" DYNET_INCLUDE="$(INSTALLED_INCLUDE)" EIGEN_ROOT="$(EIGEN_ROOT)" $(foreach c,CC CXX,$(if $(filter-out default,$(origin $c)),$c="$($c)")) VERSION=$(VERSION) MAKE="$(MAKE)" test/run

lint:
	GO="$(GO)" GOFLAGS_TEST="$(GOFLAGS_TEST)" test/lint

# ---- torture -----------------------------------------------------------------------------------------

# Random things on the engine, of which "go test" runs a moment.
# After the library: see jit/kernel/rebuild.go.
$(B)/torture/persist.test: $(GOSOURCES) $(wildcard persist/*_test.go) | $(B)/libvpps.so
	@mkdir -p $(@D)
	$(GO) test -c $(GOFLAGS_TEST) -o $@ ./persist

# The front-end, the examples and programs in C against the finished library, under sanitizers.
ASANFLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all
ASAN := $(patsubst dynetshim/tests/%.cc,$(B)/asan/%,$(wildcard dynetshim/tests/*.cc)) \
        $(patsubst test/host/%.c,$(B)/asan/host_%,$(filter-out $(shell grep -l 'LOADED_BY_HAND\|NOT_SANITIZED' test/host/*.c),$(wildcard test/host/*.c))) \
        $(patsubst cpp_examples/%.cc,$(B)/asan/app_%,$(filter-out cpp_examples/minimal.cc,$(wildcard cpp_examples/*.cc))) \
        $(patsubst test/torture/%.c,$(B)/asan/torture_%,$(wildcard test/torture/*.c)) \
        $(if $(ADAPTERS),$(patsubst dynetshim/adapter/tests/%.cc,$(B)/asan/adapter_%,$(filter-out %/words.cc,$(wildcard dynetshim/adapter/tests/*.cc))))
asan: $(ASAN)
$(B)/asan/dynet/%.o: dynetshim/src/%.cc
	@mkdir -p $(@D)
	$(CXX) -std=c++11 -fPIC -MMD -MP $(CPPFLAGS) $(DYNET) $(WARN) $(ASANFLAGS) -c $< -o $@
$(B)/asan/libvpps_dynet.a: $(patsubst dynetshim/src/%.cc,$(B)/asan/dynet/%.o,$(wildcard dynetshim/src/*.cc))
	rm -f $@
	$(AR) rcs $@ $^
ASANCXX = $(CXX) -std=c++11 -MMD -MP -MF $@.d $(CPPFLAGS) $(DYNET) $(WARN) $(ASANFLAGS) $< -o $@ -L$(B)/asan $(LINK) -Wl,-rpath,'$$ORIGIN/..' -lvpps_dynet -lvpps
ASANC = $(CC) -std=c11 -D_GNU_SOURCE -MMD -MP -MF $@.d $(CPPFLAGS) -Ibridge/ops $(WARN) $(ASANFLAGS) $< -o $@ $(LINK) -Wl,-rpath,'$$ORIGIN/..' -lvpps -lm
$(B)/asan/host_%: test/host/%.c $(B)/libvpps.so
	@mkdir -p $(@D)
	$(ASANC)
$(B)/asan/torture_%: test/torture/%.c $(B)/libvpps.so
	@mkdir -p $(@D)
	$(ASANC)
$(B)/asan/app_%: cpp_examples/%.cc $(B)/asan/libvpps_dynet.a $(B)/libvpps.so
	$(ASANCXX)
$(B)/asan/adapter_%: dynetshim/adapter/tests/%.cc $(B)/libvpps.so
	@mkdir -p $(@D)
	$(TO_INSTALLED) -DVPPS_ADAPTER $(ASANFLAGS) -pthread $< -o $@ -L$(INSTALLED_LIB) -Wl,-rpath,$(INSTALLED_LIB) -ldynet $(LINK) -Wl,-rpath,'$$ORIGIN/..' -lvpps
$(B)/asan/%: dynetshim/tests/%.cc $(B)/asan/libvpps_dynet.a $(B)/libvpps.so
	$(ASANCXX)
-include $(wildcard $(B)/asan/*.d $(B)/asan/dynet/*.d)

MINUTES ?= 10
torture:
	GO="$(GO)" MAKE="$(MAKE)" DYNET=$(if $(ADAPTERS),yes) MINUTES=$(MINUTES) $(if $(RECORD),RECORD=$(RECORD)) $(if $(SEED),SEED=$(SEED)) $(if $(FIRST),FIRST=$(FIRST)) test/torture/run

nightly:
	$(MAKE) torture MINUTES=$(if $(filter command line,$(origin MINUTES)),$(MINUTES),120) RECORD=test/torture/RESULTS.md
	$(MAKE) mutants MINUTES= RECORD=test/torture/MUTANTS.md
	RECORD=test/SYSTEMS.md test/systems

mutants: all tests
	GO="$(GO)" MAKE="$(MAKE)" DYNET=$(if $(ADAPTERS),yes) $(if $(RECORD),RECORD=$(RECORD)) test/torture/mutants/run $(if $(filter command line,$(origin MINUTES)),$(if $(MINUTES),--torture $(MINUTES))) $(ONLY)

format:
	test/lint --fix

# ---- installing ------------------------------------------------------------------------------------

D := $(DESTDIR)
PCS := $(patsubst packaging/%.in,%,$(wildcard packaging/*.pc.in))
FILL = sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|'

install: lib $(B)/libvpps_dynet.a $(B)/installed/vpps-info
	install -d $(D)$(LIBDIR)/pkgconfig $(D)$(LIBDIR)/cmake/vpps $(D)$(LIBDIR)/vpps-python $(D)$(PREFIX)/include/vpps/installed $(D)$(PREFIX)/include/vpps-dynet/dynet $(D)$(PREFIX)/bin
	install -m 755 $(B)/installed/vpps-info packaging/vpps-port $(D)$(PREFIX)/bin
	install -m 755 $(B)/libvpps.so.$(VERSION) $(D)$(LIBDIR)
	ln -sf libvpps.so.$(VERSION) $(D)$(LIBDIR)/libvpps.so.$(SERIES)
	ln -sf libvpps.so.$(SERIES) $(D)$(LIBDIR)/libvpps.so
	install -m 644 $(B)/libvpps_dynet.a $(D)$(LIBDIR)
	for f in $(wildcard $(B)/libvpps_mpi.so); do install -m 755 $$f $(D)$(LIBDIR) || exit 1; done
	for f in $(MODULE_SOURCES); do install -m $$([ -x $$f ] && echo 755 || echo 644) $$f $(D)$(LIBDIR)/vpps-python || exit 1; done
	for f in $(wildcard $(B)/python/libvpps_python.so); do install -m 644 $$f $(D)$(LIBDIR)/vpps-python || exit 1; done
	install -m 644 include/vpps.h $(D)$(PREFIX)/include
	install -m 644 include/vpps/*.hpp $(D)$(PREFIX)/include/vpps
	install -m 644 dynetshim/adapter/vpps/installed/*.hpp bridge/ops/ops.h $(D)$(PREFIX)/include/vpps/installed
	install -m 644 dynetshim/include/dynet/*.h $(D)$(PREFIX)/include/vpps-dynet/dynet
	for p in $(PCS); do $(FILL) packaging/$$p.in > $(D)$(LIBDIR)/pkgconfig/$$p || exit 1; done
	$(FILL) packaging/vppsConfigVersion.cmake.in > $(D)$(LIBDIR)/cmake/vpps/vppsConfigVersion.cmake
	install -m 644 packaging/vppsConfig.cmake $(D)$(LIBDIR)/cmake/vpps

uninstall:
	rm -f $(addprefix $(D)$(PREFIX)/bin/,vpps-info vpps-port) $(addprefix $(D)$(LIBDIR)/,libvpps.so libvpps.so.$(SERIES) libvpps.so.$(VERSION) libvpps_mpi.so libvpps_dynet.a \
	    $(addprefix vpps-python/,libvpps_python.so $(notdir $(MODULE_SOURCES))) \
	    $(addprefix pkgconfig/,$(PCS)) cmake/vpps/vppsConfig.cmake cmake/vpps/vppsConfigVersion.cmake) \
	    $(addprefix $(D)$(PREFIX)/include/,vpps.h $(patsubst include/%,%,$(wildcard include/vpps/*.hpp)) \
	    $(addprefix vpps/installed/,ops.h $(notdir $(wildcard dynetshim/adapter/vpps/installed/*.hpp))) \
	    $(patsubst dynetshim/include/%,vpps-dynet/%,$(wildcard dynetshim/include/dynet/*.h)))
	for d in $(LIBDIR)/cmake/vpps $(LIBDIR)/vpps-python $(addprefix $(PREFIX)/include/,vpps/installed vpps vpps-dynet/dynet vpps-dynet); do \
	    if [ -d "$(D)$$d" ]; then rmdir --ignore-fail-on-non-empty "$(D)$$d"; fi; done

# ---- releasing -------------------------------------------------------------------------------------

# Packages of an unreleased version sort before those of the release.
RELEASE := $(VERSION)$(if $(shell grep '^## $(VERSION) - unreleased' CHANGELOG.md),~pre)
ARCHIVE := libvpps-$(RELEASE)-linux-$(shell uname -m)
SUMS     = cd $(B)/dist && sha256sum $$(ls | grep -E '\.(tar\.gz|deb)$$') >SHA256SUMS

dist: lib $(B)/libvpps_dynet.a
	GO="$(GO)" MAKE="$(MAKE)" CXX="$(CXX)" packaging/dist $(B)/dist $(ARCHIVE)
	$(SUMS)

deb: dist
	$(if $(MAINTAINER),MAINTAINER="$(MAINTAINER)") packaging/deb $(B)/dist $(ARCHIVE) $(RELEASE)
	$(SUMS)

DIST  ?= bookworm
STEPS ?= archive packages source
bare-root:
	ARCHIVE=$(ARCHIVE) test/bare_root $(DIST) $(STEPS) || [ $$? = 77 ]

help:
	@awk '/^#/ {print substr($$0, 3); next} {exit}' $(firstword $(MAKEFILE_LIST))

clean:
	rm -rf $(B)
