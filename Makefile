# Each target calls a script; the scripts work without make too.
.PHONY: help setup build run test lint bench clean

help: ## what there is
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: ## install what is missing to build, run and test
	@scripts/setup

build: ## release binaries and the page
	@scripts/build

run: ## install what is missing, build, start everything and run a first benchmark (MODEL=none: without the real model)
	@scripts/run

test: ## formatting, lints, every test, the page in a browser
	@scripts/test

lint: ## formatting and lints only
	@scripts/test lint

bench: ## Benchtrail's own performance against its limits
	@scripts/bench

clean: ## remove the build folders (not the data in ./var, nor what setup installed)
	@scripts/build clean
