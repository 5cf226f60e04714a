# What a person types; `make help` lists it. Everything real is in scripts/, which CI calls as well.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install what is missing on this machine and make .venv
	@scripts/setup.sh

.PHONY: lab
lab: setup ## start the lab's hosts (Debian 12 and 13) and write inventories/lab/hosts.yml
	@scripts/lab up

.PHONY: lab-down
lab-down: ## throw the lab's hosts away
	@scripts/lab down

.PHONY: site
site: lab ## convert the lab's hosts: playbooks/site.yml against inventories/lab (ARGS="--check" …)
	ansible-playbook playbooks/site.yml -i inventories/lab $(ARGS)

.PHONY: test
test: ## set everything up and pass all tests (PARTS="unit cases" runs only these)
	@scripts/test.sh $(PARTS)

.PHONY: lint
lint: setup ## shellcheck, ansible-lint, ruff, mypy
	@scripts/test.sh lint ruff mypy

.PHONY: mypy
mypy: setup ## type checks alone
	@scripts/test.sh mypy

.PHONY: generate
generate: setup ## write generated files anew: argument specs, docs/rules.md, docs/variables.md, the example inventory
	@python scripts/generate.py

.PHONY: generated
generated: setup ## say which generated files are out of date
	@python scripts/generate.py --check

.PHONY: unit
unit: setup ## unit tests on the oldest and the newest Python here
	@scripts/test.sh unit-oldest unit-newest

.PHONY: cases
cases: setup ## reports from the field, planned and compared
	@scripts/test.sh cases

.PHONY: sanity
sanity: setup ## ansible-test sanity
	@scripts/test.sh sanity

.PHONY: molecule
molecule: setup ## all molecule scenarios (SCENARIO=gpu_kernel runs that one)
	@$(if $(SCENARIO),molecule test -s $(SCENARIO),scripts/test.sh molecule)

.PHONY: drill
drill: setup ## the long drills, hours (DRILL=module runs one on a machine that boots; SEED=7 CUTS=20: its power cuts)
	@tests/drills/run.sh $(or $(DRILL),long) $(if $(SEED),--seed $(SEED)) $(if $(CUTS),--cuts $(CUTS))

.PHONY: bench
bench: setup ## remote calls, planner time, 200 and 1000 stored hosts, and eight hosts of one shape (a real build, an hour)
	python tests/bench/bench.py $(ARGS)

.PHONY: lock
lock: ## write requirements/dev-py*.txt anew from requirements/dev.in
	@scripts/lock.sh

.PHONY: clean
clean: ## throw away the lab and everything that was made here
	-@scripts/lab down
	rm -rf .venv .venv-newest .cache .ansible .pytest_cache .mypy_cache .ruff_cache plan.json baremetal-nvidia-*.tar.gz
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
