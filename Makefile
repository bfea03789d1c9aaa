# SPDX-License-Identifier: GPL-2.0-only
#
# The Makefile for users. Kbuild lists the modules. The sources are linked into
# $(BUILD)/<kernel release>/ and the kernel's build runs there, so that several
# kernels build side by side and the checkout stays clean.

MAKEFLAGS += --no-print-directory --no-builtin-rules
.DEFAULT_GOAL := all
.SUFFIXES:

BUILD ?= build
SOURCES := Kbuild VERSION $(wildcard include core cq peer_mem p2pdma drivers ulp kunit)
PROBES := $(wildcard scripts/probes/*.c)

# make takes a blank for the end of a name, and clean removes what is in BUILD.
ifneq ($(words $(CURDIR)),1)
$(error The path of this directory has a blank, which make cannot handle: move the checkout)
endif
ifneq ($(words $(BUILD)),1)
$(error BUILD=$(BUILD): must be one directory, without a blank in its path)
endif
ifneq ($(filter / $(CURDIR),$(abspath $(BUILD))),)
$(error BUILD=$(BUILD): must be a directory of its own, such as build)
endif

NO_KERNEL := clean help demo test kunit lint shell tools install-tools uninstall-tools deb rpm html
# Also for a kernel whose headers are gone: KVER= names it.
REMOVE := modules_uninstall uninstall-dev
GOALS := $(or $(MAKECMDGOALS),all)
SINGLE := $(filter %.o %.i %.s %.lst %.mod %.symtypes %/,$(GOALS))
MODULE := $(filter %.ko,$(GOALS))

# All processors, unless the user has an opinion.
ifeq ($(filter -j% --jobserver%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif

# The same flags whoever builds: another command line would compile everything again.
W ?= 1

# The kernel to build for: KDIR, else the headers of KVER, else those of the
# running kernel.
ifeq ($(KDIR),)
KVER ?= $(shell uname -r)
KDIR := $(firstword $(wildcard /lib/modules/$(KVER)/build/Makefile \
			       /usr/src/linux-headers-$(KVER)/Makefile))
KDIR := $(patsubst %/Makefile,%,$(KDIR))
endif

# Debian's kernel.release file lacks the flavour; this one is what uname says.
RELEASE := $(if $(KDIR),$(shell sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' \
	$(KDIR)/include/generated/utsrelease.h 2>/dev/null))
ifeq ($(KDIR)$(filter-out $(REMOVE) $(NO_KERNEL),$(GOALS)),)
RELEASE := $(if $(filter $(REMOVE),$(GOALS)),$(KVER))
endif
OUT := $(abspath $(BUILD))/$(RELEASE)

# The core that the modules are for: kverbs' own, or the kernel's, for which there is only the
# software HCA. Its tree of links has none of our verbs headers.
CORE ?= kverbs
ifeq ($(CORE),mainline)
OUT := $(OUT)/mainline
override KVERBS_KUNIT :=
else ifneq ($(CORE),kverbs)
$(error CORE=$(CORE): must be kverbs or mainline)
endif

ifneq ($(filter-out $(NO_KERNEL) load unload,$(GOALS)),)
ifeq ($(or $(KDIR),$(RELEASE)),)
$(error No headers for kernel $(KVER). Install them with: apt-get install \
	linux-headers-$(KVER) (or linux-headers-amd64 for the current one), or \
	name another kernel with KVER=<version> or KDIR=<kernel build tree>)
endif
ifeq ($(RELEASE),)
$(error $(KDIR) is not a prepared kernel build tree: it has no \
	include/generated/utsrelease.h. Run "make modules_prepare" there, or \
	name another one with KDIR=)
endif
endif

# A tree of User Mode Linux does not know its own architecture.
UM := $(if $(RELEASE),$(shell grep -s '^CONFIG_UML=y' $(KDIR)/include/config/auto.conf))
ifneq ($(UM),)
export ARCH := um
else ifneq ($(if $(RELEASE),$(shell grep -s '^CONFIG_ARM64=y' $(KDIR)/include/config/auto.conf)),)
export ARCH := arm64
ifneq ($(shell uname -m),aarch64)
export CROSS_COMPILE ?= aarch64-linux-gnu-
endif
endif

ifeq ($(CORE),mainline)
ifneq ($(filter-out $(NO_KERNEL) $(REMOVE) load unload,$(GOALS)),)
ifeq ($(shell grep -s '^CONFIG_INFINIBAND=' $(KDIR)/include/config/auto.conf),)
$(error Kernel $(RELEASE) is built without CONFIG_INFINIBAND: it has no core that \
	the software HCA could run under. kverbs' own core needs none: leave out CORE=)
endif
endif
endif

# The suites need a kernel with KUnit, which distributions rarely have.
ifeq ($(RELEASE),)
else ifneq ($(shell grep -s '^CONFIG_KUNIT=' $(KDIR)/include/config/auto.conf),)
KVERBS_KUNIT ?= $(if $(wildcard kunit/Kbuild),m)
else ifneq ($(KUNIT),)
KVERBS_KUNIT ?= m
else ifneq ($(KVERBS_KUNIT),)
$(error KVERBS_KUNIT=$(KVERBS_KUNIT) asked for, but kernel $(RELEASE) is built \
	without CONFIG_KUNIT. scripts/kernels builds one that has it, and scripts/stock-kunit \
	a KUnit to name with KUNIT=)
endif

KBUILD := $(MAKE) -C $(KDIR) M=$(OUT) W=$(W) KVERBS_KUNIT=$(KVERBS_KUNIT) \
	  $(if $(KUNIT),KBUILD_EXTRA_SYMBOLS=$(abspath $(KUNIT))/Module.symvers)

.PHONY: all modules
all modules: $(OUT)/.probed
	+@$(KBUILD) modules

# Kbuild, asked for one module of several that need each other, would forget the symbols of
# the others. They are compiled only if they have changed.
ifneq ($(MODULE),)
.PHONY: $(MODULE)
$(MODULE): modules
	@test -e $(OUT)/$@ || { echo "No module $@. There are:" \
		"$$(cd $(OUT) && echo *.ko kunit/*.ko)" >&2; exit 2; }
	@echo "  $(OUT)/$@"
endif

ifneq ($(SINGLE),)
.PHONY: single $(SINGLE)
$(SINGLE): single
	@:
single: $(OUT)/.probed
	+@$(KBUILD) $(SINGLE)
endif

.PHONY: tree
tree:
ifeq ($(CORE),mainline)
	@mkdir -p $(OUT)/drivers $(addprefix $(OUT)/include/,kverbs rdma uapi/kverbs)
	@cp -rsf --no-preserve=mode $(CURDIR)/drivers/emu $(CURDIR)/drivers/fake_gpu $(OUT)/drivers/
	@ln -sf $(addprefix $(CURDIR)/include/kverbs/,compat.h delay.h remap.h) \
		$(OUT)/include/kverbs/
	@ln -sf $(CURDIR)/include/uapi/kverbs/emu_capture.h \
		$(CURDIR)/include/uapi/kverbs/fake_gpu.h $(OUT)/include/uapi/kverbs/
	@ln -sf $(CURDIR)/include/rdma/peer_mem.h $(OUT)/include/rdma/
	@ln -sf $(CURDIR)/VERSION $(OUT)/
	@ln -sf $(CURDIR)/Kbuild $(OUT)/Kbuild.kverbs
	@ln -sf $(CURDIR)/drivers/emu/mainline/Kbuild $(OUT)/Kbuild
else
	@mkdir -p $(OUT)
	@cp -rsf --no-preserve=mode $(addprefix $(CURDIR)/,$(SOURCES)) $(OUT)/
endif
	@find $(OUT) -xtype l -delete

# Features of this kernel. Each probe is a file that compiles only if the kernel
# has the feature.
$(OUT)/.probed: $(PROBES) scripts/probe $(KDIR)/include/config/auto.conf | tree
	+@echo "  PROBE   $(RELEASE)"
	+@MAKE="$(MAKE)" scripts/probe $(KDIR) $(OUT)/.probes $(OUT)/include/kverbs/config.h
	@touch $@

.PHONY: load unload demo test kunit lint shell
# The kernel's own ULPs: see Documentation/ulps.rst. PARTS= names some of them.
.PHONY: ulps
ulps:
	@env -u MAKEFLAGS -u MAKELEVEL BUILD=$(abspath $(BUILD)) scripts/ulps --kdir $(KDIR) \
		$(PARTS)

# Not "load unload:", which make would take for its load directive.
unload load:
	@scripts/load $@ $(OUT)

demo test lint:
	@env -u MAKEFLAGS -u MAKELEVEL scripts/$@ $(ARGS)

kunit:
	@env -u MAKEFLAGS -u MAKELEVEL scripts/kunit $(if $(DEBUG),--debug) $(if $(QEMU),--qemu) \
		$(foreach suite,$(or $(SUITE),$(if $(CASE),*)),'$(suite)$(CASE:%=.%)') $(ARGS)

# The command kverbs, which shows channel adapters from user space.
.PHONY: tools install-tools uninstall-tools
tools install-tools uninstall-tools:
	+@$(MAKE) -C $(CURDIR)/tools O=$(abspath $(BUILD))/tools \
		$(or $(patsubst %-tools,%,$(filter %-tools,$@)),all)

# Files that GPU drivers are built against: see scripts/install-dev.
.PHONY: install-dev uninstall-dev
install-dev: all
install-dev uninstall-dev:
	@scripts/install-dev $(@:-dev=) $(OUT)

# Where modprobe finds them: see scripts/install-modules. Not Kbuild's target of this name, whose
# directory depmod looks at.
.PHONY: modules_install modules_uninstall
modules_install: all
modules_install modules_uninstall:
	@scripts/install-modules $(@:modules_%=%) $(OUT) $(RELEASE)

# KEY= and CERT= sign what is built: see scripts/sign.
.PHONY: sign
CERT ?= $(KEY:%.key=%.der)
sign: all
	@scripts/sign $(KDIR) "$(KEY)" "$(CERT)" $(OUT)/*.ko

# Packages, in $(BUILD)/deb/ and $(BUILD)/rpm/.
.PHONY: deb rpm
deb rpm:
	@env -u MAKEFLAGS -u MAKELEVEL BUILD=$(abspath $(BUILD)) scripts/packaging/$@

# The documentation as a site.
.PHONY: html
html:
	@BUILD=$(abspath $(BUILD)) scripts/html

shell:
	@env -u MAKEFLAGS -u MAKELEVEL scripts/vm --shell $(if $(TOOLS),--tools $(TOOLS)) $(ARGS)

# Another directory may have folders of such names that are not ours: it must have been built in.
OWN_BUILD := $(filter $(CURDIR)/build,$(abspath $(BUILD)))$(wildcard $(BUILD)/.build-*.lock)

.PHONY: clean
clean:
	@rm -rf $(if $(OWN_BUILD),$(addprefix $(BUILD)/,extra logs static tools deb rpm html kunit coverage) \
			$(wildcard $(BUILD)/.*.lock)) \
		$(patsubst %/include/kverbs/config.h,%, \
			$(wildcard $(BUILD)/*/include/kverbs/config.h \
				$(BUILD)/*/mainline/include/kverbs/config.h))
	@rmdir $(BUILD) 2>/dev/null || true

.PHONY: help
help:
	@echo 'kverbs: an RDMA midlayer with a software HCA, built out of tree'
	@echo
	@echo 'Build:'
	@echo '  all        the modules, into $(BUILD)/<kernel release>/ (default)'
	@echo '             with CORE=mainline kverbs_emu.ko and kverbs_fake_gpu.ko, for its ib_core,'
	@echo '             into $(BUILD)/<kernel release>/mainline/'
	@echo '  cq/lane.o  one object; also .i .s .lst, or a directory: kunit/'
	@echo '  kverbs.ko  one module, and all that it needs: as all does'
	@echo '  tools      the command kverbs, into $(BUILD)/tools/'
	@echo '  install-tools  install it, its manual page and completion'
	@echo '             (DESTDIR= PREFIX=/usr/local); uninstall-tools removes them'
	@echo '  install-dev    install what drivers of GPUs are built against, for one'
	@echo '             kernel; uninstall-dev removes it (root, or DESTDIR=)'
	@echo '  modules_install  install the modules for one kernel where modprobe finds them, with'
	@echo '             CORE=mainline the one for the ib_core of the kernel; modules_uninstall'
	@echo '             removes them (root, or INSTALL_MOD_PATH=; INSTALL_MOD_STRIP=1)'
	@echo '  sign       sign the modules: KEY=<file.key>, CERT=<file.der>'
	@echo '  html       the documentation as a site, in $(BUILD)/html/'
	@echo '  deb        Debian packages, in $(BUILD)/deb/'
	@echo '  rpm        an RPM package of the software HCA, in $(BUILD)/rpm/'
	@echo '  clean      remove what was built in $(BUILD)/'
	@echo '  ulps       the kernel'\''s own connection manager and ULPs for kverbs, from its source'
	@echo '             package, into $(BUILD)/<kernel release>/ulps/ (PARTS="cm nvme smc echo")'
	@echo 'Run on this machine (root):'
	@echo '  load       insert the modules, with what they depend on'
	@echo '  unload     remove them'
	@echo 'Run in QEMU (installs what is missing; ARGS="..." reaches the script):'
	@echo '  demo       throughput and latency of the pingpong ULP'
	@echo '  test       what finds most bugs in minutes, or the parts named in ARGS: lint'
	@echo '             builds kunit stock ca peer p2p hotplug ulps sweep figure selftest kcsan'
	@echo '             coverage; ARGS=--full for everything'
	@echo '  kunit      KUnit suites: SUITE="<suite>.." CASE=<case> DEBUG=1 QEMU=1; without,'
	@echo '             their names'
	@echo '  lint       the static checks alone'
	@echo '  shell      a guest with the modules loaded, and a prompt; with TOOLS=rdma-core,perftest'
	@echo '             the software HCA on the kernel'"'"'s own core, and these programs;'
	@echo '             ARGS="--share <dir> --smp <n> --mem <MiB> --append <args>"'
	@echo 'and, each with --help: scripts/exercise (random calls against a model),'
	@echo 'scripts/bench (what completions and messages cost)'
	@echo
	@echo 'Variables:'
	@echo '  KVER=<release>    kernel whose headers are installed (running one)'
	@echo '  KDIR=<dir>        or a kernel build tree, for example a test kernel'
	@echo '  BUILD=<dir>       where to build (build)'
	@echo '  CORE=mainline     the core that the software HCA is for (kverbs)'
	@echo '  KVERBS_KUNIT=m    build the KUnit suites (default where possible)'
	@echo '  KUNIT=<dir>       for these, a KUnit of scripts/stock-kunit, on a kernel that has none'
	@echo '  KVERBS_SUITES="<module>.."  only these of them'
	@echo '  W=2 C=1 C=2 V=1   as in the kernel: more warnings (default W=1), sparse, verbose'
