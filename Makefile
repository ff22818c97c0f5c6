# The testbed's commands. `make` alone lists them.
SHELL := /bin/bash
WITH := setup/with-tools
CARGO := cd switch-emulator && ../$(WITH) cargo

# Passed on by `make evaluate`, as in: make evaluate ARGS='-e mode=live -e figures=fig17a'
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup library clients browser evaluate teardown quick test lint lint-python types lint-yaml lint-shell \
    lint-docs lint-commits lint-rust rust unit python oldest-ansible waits live oftest switch-tester faucet-suite random \
    shuffled fuzz differential audit smoke roles anywhere \
    bench evidence endurance topologies drawings notebooks lab-sheet site wheel test-wheel images containerlab bundle vagrant-box \
    vagrant-smoke service-image replay-image deb dpdk other-kernel lock clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 16

# When several steps run in turn, only the first checks the set-up.
setup: ## Install everything (quick when nothing changed)
	@[ -n "$$SETUP_IS_DONE" ] || setup/all.sh

library: ## Install only what needs no root: planning, the service, figures in virtual time
	@setup/all.sh rust uv python emulator

clients: setup ## Also install the clients that others wrote, tshark and the oldest Ansible, for the tests only
	@setup/clients.sh

browser: setup ## Also install a browser, for the tests of the service's page only
	@setup/browser.sh

dpdk: ## Also install Open vSwitch with DPDK, for `loko bench` (Debian's packages, 80 MB)
	@setup/dpdk.sh

other-kernel: ## Also install QEMU and unpack a kernel, only for tests that need its modules (Debian's packages, 450 MB)
	@setup/other-kernel.sh

evaluate: setup ## Replay the paper's figures; choose more with ARGS='-e mode=live -e figures=fig17a'
	@$(WITH) ansible-playbook -i playbooks/inventories/emulator playbooks/evaluate.yml $(ARGS)

teardown: setup ## Remove whatever a run left behind
	@$(WITH) ansible-playbook -i playbooks/inventories/emulator playbooks/teardown.yml

# Each check is a target; those that use only one core run in parallel.
LINTS := lint-python+types+lint-yaml+lint-shell+lint-docs+lint-commits lint-rust

quick: ## Format, lint, types, unit tests of Rust and Python: what to run after each change
	@setup/in-turn.sh quick setup $(LINTS) rust unit

test: ## Everything: quick's steps, and every test of Python, also those in real time
	@setup/in-turn.sh test setup clients browser $(LINTS) rust python live

lint: ## Format, lint and type checks of every language
	@setup/in-turn.sh lint setup $(LINTS)

lint-python: setup ## ruff
	@$(WITH) ruff check
	@$(WITH) ruff format --check

types: setup ## mypy, strict
	@$(WITH) mypy

# The result of ansible-lint depends only on these files, and it is slow.
lint-yaml: setup ## yamllint, ansible-lint
	@$(WITH) yamllint --strict .
	@setup/unchanged.sh $@ evaluate.yml playbooks tests/roles ansible.cfg .ansible-lint .yamllint -- ansible-lint -q

lint-shell: setup ## shellcheck
	@shellcheck setup/*.sh setup/service/*.sh setup/with-tools setup/container/*.sh setup/container/start-board .ci/run \
	    playbooks/roles/*/files/*.sh tests/harness/*.sh tests/roles/*.sh switch-emulator/fuzz/run.sh

SITE := sphinx-build --quiet --fail-on-warning --keep-going -c docs/site . dist/site

# All pages, and what they show and lead to: the reference pages are also generated from the code.
PAGES := README.md ARTIFACT.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs CITATION.cff LICENSE
DOCUMENTED := controller/loko testbed/loko_testbed switch-emulator/python

lint-docs: setup ## The documentation can be built as a site, and its links lead somewhere
	@setup/unchanged.sh $@ $(PAGES) $(DOCUMENTED) -- $(SITE)

lint-commits: ## The form of commit messages: "area: subject", at most 72 characters
	@setup/commit-messages.sh

# All that the crates and their tests read (compared with the code: tests/unit/project/test_unchanged.py).
RUST := switch-emulator switch-emulator/fuzz/* docs/quirks.md

lint-rust: setup ## rustfmt, clippy
	@$(CARGO) fmt --check
	@setup/unchanged.sh $@ $(RUST) -- env --chdir=switch-emulator cargo clippy --release --workspace --all-targets --locked --quiet -- -D warnings

rust: setup ## Tests in Rust; choose with ARGS='-p zodiac-firmware flow_mod'
	@setup/unchanged.sh $@ $(RUST) -- env --chdir=switch-emulator cargo test --release --workspace --locked --quiet $(ARGS)

unit: setup ## Unit tests in Python; only those that failed with ARGS=--lf
	@$(WITH) pytest --numprocesses auto --dist worksteal -m 'not live and not namespaces' tests/unit $(ARGS)

# Over twice as many workers as cores, because most tests wait: for programs that they have started, or in real time for
# consoles, controllers, labs and timers. The latter judge no delays, and each has labs of its own.
python: setup clients browser ## Tests in Python, also in real time if they judge no delays; only those that failed with ARGS=--lf
	@$(WITH) pytest --numprocesses $$((2 * $$(nproc) + 1)) --dist worksteal \
	    -m '(not live and not namespaces) or waits' $(ARGS)

oldest-ansible: clients ## Only the tests with the oldest Ansible that the playbooks are for
	@$(WITH) pytest -m 'not disposable_root' tests/integration/playbooks/test_oldest_ansible.py $(ARGS)

# Only these modules have tests with a marker; to collect all tests would take ten seconds.
MARKED = $$(grep -rlE --include='test_*.py' 'mark\.($(1))\b' tests)

waits: setup clients ## Of `make python` only the tests in real time
	@$(WITH) pytest --numprocesses $$(($$(nproc) + 1)) --dist worksteal -m waits $(call MARKED,waits) $(ARGS)

# These run one after another, because they need the cores for themselves. A test that fails while the machine withholds
# the cores from it is repeated and named (tests/harness/stalls.py).
live: setup ## Tests in real time that need the machine for themselves; only those that failed with ARGS=--lf
	@$(WITH) pytest --durations 25 -m '(live or namespaces) and not waits' $(call MARKED,live|namespaces) $(ARGS)

# Sets are also iterated in the same order in every run, unless a random order is requested.
test quick unit python waits live: export PYTHONHASHSEED := 0

oftest: clients ## OFTest's tests against the board, compared with what is recorded (as root; twenty minutes); ARGS='--mode spec'
	@$(WITH) python tests/clients/oftest_compare.py $(ARGS)

switch-tester: clients ## os-ken's switch tester against the board, compared with what is recorded (as root; minutes); ARGS='--version 1.0'
	@$(WITH) python tests/clients/switch_tester_compare.py $(ARGS)

faucet-suite: clients ## Faucet's own tests with boards for switches, compared with what is recorded (as root; minutes); ARGS='--mode spec'
	@$(WITH) python tests/clients/faucet_trial.py $(ARGS)

random: SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
random: export PROPTEST_RNG_SEED = $(SEED)
random: export PYTHONHASHSEED = $(SEED)
random: setup ## The property tests of Rust and Python with random examples; the same ones again with SEED=4711
	@echo "random: seed $(SEED); the same again: make random SEED=$(SEED)"
	@$(CARGO) test --release --workspace --locked --quiet
	@$(WITH) pytest --numprocesses auto --dist worksteal -m 'hypothesis and not live and not namespaces' \
	    --hypothesis-profile random --hypothesis-seed $(SEED)

shuffled: SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
shuffled: setup clients browser ## The tests that build no labs, in random order; the same again with SEED=4711
	@echo "shuffled: seed $(SEED); the same again: make shuffled SEED=$(SEED)"
	@$(WITH) pytest -p randomly --randomly-seed $(SEED) --numprocesses $$((2 * $$(nproc) + 1)) --dist worksteal \
	    -m 'not live and not namespaces' $(ARGS)

fuzz: setup ## Feed the emulator random input; change with ARGS='--seconds 3600 openflow'
	@setup/fuzz.sh
	@switch-emulator/fuzz/run.sh $(ARGS)

audit: setup ## Licences, sources and known vulnerabilities of all crates and packages (minutes the first time)
	@setup/audit.sh

differential: setup ## Compare the specification's switch with Open vSwitch, a minute; change with ARGS='--seconds 3600 --seed 4711'
	@$(WITH) python tests/differential/compare.py $(ARGS)

smoke: setup ## Short live runs of two switches and a ring of five, with every backend that works here
	@$(WITH) python -m loko_testbed.cli.smoke $(ARGS)

roles: ## Provision a bare Debian in a disposable root, from nothing, twice (as root; a quarter of an hour)
	@tests/roles/bare_debian.sh

anywhere: ## Set up copies of this folder in unusual places, from nothing (as root; a quarter of an hour)
	@tests/harness/anywhere.sh

# Measures the emulator that is shipped in place of that of the tests.
bench: setup ## Speed of simulator, admission, service, schedules and evaluation, beside peers
	@setup/dist.sh
	@. setup/environment.sh && PYTHONPATH="$$shipped/python" LOKO_EMULATOR="$$shipped/zodiac-fx" \
	    $(WITH) python -m benchmarks $(ARGS)

evidence: setup ## Try to break the guarantees with 10^9 packets; with fewer trials: ARGS='--runs 100'
	@$(WITH) loko evaluate --strict $(addprefix studies/,models randomsets attackschemes attackmistakes \
	    attackreleased attackreserved attackcapacity) --out results/evidence $(ARGS)

endurance: setup ## Watch a live board's memory for an hour; shorter with ARGS='--seconds 300'
	@$(WITH) python -m benchmarks.endurance $(ARGS)

topologies: setup ## Write the topology file of containerlab for each lab that can be had in containers
	@for lab in two-switch labs/two-switch/server.yml ring labs/ring/five.yml; do $(WITH) loko lab clab $$lab --write; done

drawings: setup ## Draw what the pages show of cables, packages, frames and curves
	@$(WITH) python tests/harness/packages.py
	@$(WITH) python -m loko_testbed.reproduce.plots.explained docs/images
	@$(WITH) loko lab draw two-switch --cabling labs/two-switch/one-real-board.yml --out docs/images/cabling-mixed.svg
	@$(WITH) loko lab draw two-switch --cabling labs/two-switch/two-real-boards.yml \
	    --out docs/images/cabling-two-switch.svg
	@$(WITH) loko lab draw labs/ring/five.yml --cabling labs/ring/five-two-real-boards.yml \
	    --out docs/images/cabling-ring.svg
	@$(WITH) loko lab draw labs/two-switch/server.yml --out docs/images/cabling-server.svg

wheel: setup ## Write dist/loko_testbed-….whl for `pip install` on other machines
	@setup/wheel.sh

# Too slow for each change: the shipped emulator is optimised as a whole, for minutes.
test-wheel: wheel ## Test the wheel as it is shipped: it computes the same bytes as the build of the tests
	@LOKO_SHIPPED_WHEEL=1 $(WITH) pytest tests/integration/project/test_wheel.py $(ARGS)

service-image: setup ## A container image of the service, built from the wheel and tried (needs docker or podman)
	@setup/service/image.sh

replay-image: ## A container image of the whole replay, from this commit (needs docker or podman)
	@setup/container/image.sh

deb: setup ## dist/loko-testbed_….deb for this release of Debian or Ubuntu: the service in /opt/loko, with a unit
	@setup/service/deb.sh

site: setup ## Build the documentation as a site, dist/site/index.html; a link that leads nowhere is an error
	@$(WITH) $(SITE)

notebooks: setup ## Run the notebooks of docs/notebooks and keep what they print
	@$(WITH) python tests/harness/notebooks.py

lab-sheet: setup ## Check the lab sheet for a course against its solutions (part 4 as root)
	@$(WITH) pytest -q tests/integration/project/test_lab_sheet.py

images: setup ## The container images for that, from Debian packages and our own build
	@setup/images.sh

containerlab: ## The program containerlab, unless it is there (needs Go)
	@setup/containerlab.sh

bundle: setup ## Gather in prebuilt/ what another machine needs to be set up without compiler and network
	@setup/bundle.sh

vagrant-box: ## Build a Vagrant box for libvirt from Debian packages (as root)
	@setup/vagrant-box.sh

vagrant-smoke: bundle images ## Bring up the machine of the Vagrantfile from that box, evaluate in it, destroy it (minutes)
	@setup/vagrant-smoke.sh

lock: clients ## Pin the newest versions that pyproject.toml, setup/*.in and tests/clients/*.in allow
	@$(WITH) uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
	    --generate-hashes --no-emit-index-url --upgrade --quiet -o requirements.lock
	@$(WITH) uv pip compile tests/clients/schemathesis.in --custom-compile-command 'make lock' \
	    --universal --python-version 3.11 --generate-hashes --no-emit-index-url --upgrade --quiet \
	    -o tests/clients/schemathesis.lock
	@$(WITH) uv pip compile tests/clients/topologies.in --custom-compile-command 'make lock' \
	    --universal --python-version 3.11 --generate-hashes --no-emit-index-url --upgrade --quiet \
	    -o tests/clients/topologies.lock
	@$(WITH) uv pip compile tests/clients/faucet.in --custom-compile-command 'make lock' \
	    --universal --python-version 3.10 --generate-hashes --no-emit-index-url --upgrade --quiet \
	    -o tests/clients/faucet.lock
	@$(WITH) uv pip compile tests/clients/faucet-suite.in --custom-compile-command 'make lock' \
	    --universal --python-version 3.10 --generate-hashes --no-emit-index-url --upgrade --quiet \
	    -o tests/clients/faucet-suite.lock
	@$(WITH) uv pip compile pyproject.toml --extra figures --extra service --constraint requirements.lock \
	    --custom-compile-command 'make lock' --universal --python-version 3.11 --generate-hashes \
	    --no-emit-index-url --quiet -o setup/requirements-service.lock
	@for list in uv bundle ansible audit; do \
	    $(WITH) uv pip compile setup/requirements-$$list.in --custom-compile-command 'make lock' --universal \
	        --python-version 3.11 --generate-hashes --no-emit-index-url --upgrade --quiet \
	        -o setup/requirements-$$list.lock || exit 1; \
	done
	@$(WITH) uv pip compile tests/clients/requirements-build.in --custom-compile-command 'make lock' \
	    --python-version 3.11 --generate-hashes --no-emit-index-url --upgrade --quiet \
	    -o tests/clients/requirements-build.lock
	@$(WITH) uv pip compile tests/clients/requirements.in --custom-compile-command 'make lock' \
	    --python "$$(. setup/environment.sh && echo "$$clients")/python/bin/python" --no-build-isolation --generate-hashes --no-emit-index-url \
	    --upgrade --quiet -o tests/clients/requirements.lock

clean: ## Remove what was built and installed here (or in LOKO_BUILD), but no results
	@. setup/environment.sh && rm -rf "$$clients" "$$state" "$$venv" "$$build/.cache" "$$build/target" \
	    switch-emulator/target .mypy_cache .ruff_cache .pytest_cache .hypothesis
