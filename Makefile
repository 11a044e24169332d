# Entry point for developers. Meson and ninja do the building; every flavour has its own folder:
#   build/release  what users run     build/asan  what the tests run (sanitizers, warnings are errors)
#   build/fuzz     libFuzzer targets (clang)
# Targets that need tools or libraries first let tools/setup install those that this machine lacks.

PREFIX ?= /usr/local
DESTDIR ?=
ARGS ?=
FUZZ_SECONDS ?= 30
PORTABLE ?= x86_64 aarch64

first_of = $(firstword $(foreach tool,$(1),$(shell command -v $(tool) 2>/dev/null)) $(firstword $(1)))
CLANG = $(call first_of,clang-14 clang)
CLANG_TIDY = $(call first_of,clang-tidy-14 clang-tidy)
CLANG_FORMAT = $(call first_of,clang-format-14 clang-format)

RELEASE_OPTIONS = --buildtype=debugoptimized -Dtests=disabled
ASAN_OPTIONS_MESON = --buildtype=debugoptimized -Db_sanitize=address,undefined -Dwerror=true \
	-Dtests=enabled \
	-Dc_args='-g1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -fno-sanitize-recover=all'
FUZZ_OPTIONS = --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false \
	-Dtests=disabled -Dfuzz=true -Dc_args='-fsanitize=fuzzer-no-link -fno-sanitize-recover=all'

C_FILES = $(shell git ls-files -co --exclude-standard '*.c' '*.h')

.PHONY: build run test test-peers test-packages bench bench-peers fuzz format lint install clean help asan \
	portable deb image npm wheel dist

build: build/release/build.ninja ## build the program: build/rialto (release, hardened)
	ninja -C build/release
	@cp -f build/release/src/rialto build/rialto.new && mv -f build/rialto.new build/rialto
	@cp -f build/release/src/conductor build/conductor.new && mv -f build/conductor.new build/conductor
	@cp -f build/release/src/rialto-shim build/rialto-shim.new && mv -f build/rialto-shim.new build/rialto-shim

run: build ## build, then serve: ARGS="-c my.yaml" passes options on
	@build/rialto serve $(ARGS)

test: setup-test ## every test there is; the last line says how many passed and failed
	@tests/run

test-peers: asan build setup-test ## against real peers of other people (needs go, cargo, python3); says which are missing
	@tests/peers/run

asan: build/asan/build.ninja ## build the flavour the tests run
	ninja -C build/asan

bench: build setup-test ## measure calls per second, latency, memory and start time against a floor
	@bench/run

bench-peers: build setup-test ## measure gateways of other people beside Rialto (needs npm and PyPI); says which are missing
	@tools/npm && ninja -C build/release bench/bench_echo_server bench/bench_load >/dev/null && \
		build/npm/node_modules/node-linux-*/bin/node bench/peers.mjs $(ARGS)

fuzz: build/fuzz/build.ninja ## run every fuzz target for FUZZ_SECONDS (30) each
	ninja -C build/fuzz
	@fuzz/run $(FUZZ_SECONDS)

format: setup-lint ## format all C files
	$(CLANG_FORMAT) -i $(C_FILES)

lint: build/release/build.ninja setup-lint ## formatting and clang-tidy; ANALYZER=1 adds gcc -fanalyzer
	$(CLANG_FORMAT) --dry-run -Werror $(C_FILES)
	git ls-files -co --exclude-standard 'src/*.c' | xargs -P 2 -n 4 $(CLANG_TIDY) --quiet -p build/release \
		--extra-arg=-Wno-unknown-warning-option
ifdef ANALYZER
	@test -f build/analyzer/build.ninja || \
		meson setup build/analyzer --buildtype=debugoptimized -Dtests=disabled -Dc_args=-fanalyzer
	ninja -C build/analyzer
endif

portable: setup-packages ## dist/rialto-linux-x86_64 and -aarch64: one static program each, for any Linux
	@for arch in $(PORTABLE); do nice packaging/portable/build $$arch || exit 1; done
	@packaging/portable/sizes

deb: setup-packages ## dist/*.deb: the Debian package, for this machine
	@packaging/debian/build

image: setup-packages ## dist/rialto-image-*.tar: a container image (OCI), made without a daemon
	@packaging/image/build $(PORTABLE)

npm: setup-packages ## dist/npm/*.tgz: the npm packages with the portable programs inside
	@packaging/npm/build $(PORTABLE)

wheel: setup-packages ## dist/*.whl: the Python wheels with the portable programs inside
	@packaging/wheel/build $(PORTABLE)

dist: ## dist/rialto-VERSION.tar.xz: the sources; two runs make the same bytes
	@packaging/source/build

test-packages: asan setup-packages ## build, install and use every kind of package; takes a while the first time
	@tests/packages/run

install: build ## install under PREFIX (/usr/local); DESTDIR is honoured
	@meson configure build/release -Dprefix='$(abspath $(PREFIX))' && ninja -C build/release >/dev/null
	DESTDIR='$(DESTDIR)' meson install -C build/release --no-rebuild

clean: ## remove everything that was built
	rm -rf build dist

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

setup-%:
	@tools/setup $*

# A flavour is configured from scratch when this file changes, because its options are in this file.
build/release/build.ninja: Makefile | setup-build
	@rm -rf $(@D)
	meson setup $(@D) $(RELEASE_OPTIONS) >/dev/null || { cat $(@D)/meson-logs/meson-log.txt; exit 1; }

build/asan/build.ninja: Makefile | setup-test
	@rm -rf $(@D)
	meson setup $(@D) $(ASAN_OPTIONS_MESON)

build/fuzz/build.ninja: Makefile | setup-fuzz
	@rm -rf $(@D)
	CC=$(CLANG) meson setup $(@D) $(FUZZ_OPTIONS)
