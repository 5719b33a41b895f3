# Postern. Run "make" to list the commands.
GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LINT     := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
LONG     ?= 60s
LONG_DOCUMENT ?= 10m

# go.mau.fi/util/exsync sets a flag under a read lock (docs/decisions/0003), which the
# race detector would report in our tests at random; so does the socket of whatsmeow, which
# clears a callback without its lock when a connection is closed at both ends. SQLite is C
# translated to Go and shares no memory with our code; with the detector it takes half the
# time of all tests. Excluding more packages makes the detector report false races: they contain
# instances of generic code from package sync, which it must see.
RACE     := -race -gcflags=go.mau.fi/util/exsync=-race=false -gcflags=go.mau.fi/whatsmeow/socket=-race=false \
            -gcflags=modernc.org/...=-race=false

# Neither do packages that compute and share nothing: ciphers, hashes and pictures. None of them imports
# package sync. The detector makes them five times slower.
FIPS := crypto/internal/fips140
RACE += $(foreach p,$(FIPS)/sha256 $(FIPS)/sha512 $(FIPS)/hmac $(FIPS)/aes $(FIPS)/aes/gcm $(FIPS)/pbkdf2 $(FIPS)/hkdf \
        $(FIPS)/edwards25519/field $(FIPS)/nistec/fiat $(FIPS)/bigmod $(FIPS)/subtle $(FIPS)/alias \
        $(FIPS)deps/byteorder crypto/pbkdf2 crypto/hmac filippo.io/edwards25519/field golang.org/x/crypto/blake2b \
        image/color image/draw image/jpeg image/png image/internal/imageutil,-gcflags=$(p)=-race=false)

# Packages are tested in the order in which they are named first. The longest begin, or one of them would
# run alone at the end. Many tests wait, so twice as many run at a time as there are processors. "make test"
# vets before, nobody debugs these programs, and they have memory to spare.
LONGEST  := ./internal/testkit ./internal/store
PARALLEL ?= -parallel $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
QUICK    := -vet=off -ldflags="-s -w"

# Most tests of these packages make one request after another, run commands, or call functions that share
# nothing. "make test-long" runs them with the race detector.
ALONE := ./internal/api ./internal/api/schema ./internal/api/spec ./internal/dash ./internal/problem \
         ./internal/media/smalljpeg ./cmd/postern
# The programs that it starts are built without the detector in any case.
CHAOS := ./internal/chaos
# The packages with files that are built with fail points only.
RIGGED = $(shell grep -rl --include='*.go' '^//go:build.*failpoints' cmd internal | xargs -n 1 dirname | \
           sort -u | sed 's|^|./|')

# The databases of tests are in memory if it has room for them: the tests of webhook took 114 s on a disk, and
# 46 s in memory. "make chaos" and "make bench" use the disk.
ROOMY = $(shell test "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print $$4}')" -gt 4000000 2>/dev/null && echo /dev/shm)

# A program with the race detector sleeps a second before it exits. The tests start about a hundred.
export GORACE ?= atexit_sleep_ms=20

export CGO_ENABLED ?= 0
# Build releases and tests with the same flags, so that each package is built once.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)

.DEFAULT_GOAL := help
.PHONY: help build up demo test test-long chaos lint bench fmt deps

NODES ?= 1

help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/postern, a static binary
	$(GO) build -ldflags "-s -w -X main.version=$(VERSION)" -o bin/postern ./cmd/postern

up: build ## build, run the demo without a phone, and keep serving on 127.0.0.1:8080 (NODES=3: several servers, one of which is killed)
ifeq ($(NODES),1)
	./bin/postern demo
else
	$(GO) build -o bin ./cmd/vendorsim ./scripts/balancer
	./scripts/up-nodes $(NODES)
endif

demo: build ## run the demo once and exit
	./bin/postern demo --once

deps: ## install what the tests need besides Go (as root), or list what is missing
	@./scripts/deps gcc:gcc libc6-dev:/usr/include/stdio.h zbar-tools:zbarimg librsvg2-bin:rsvg-convert 'postgresql:/usr/lib/postgresql/*/bin/initdb' chromium-headless-shell:chromium-headless-shell ffmpeg:ffmpeg npm:npm nginx-light:nginx haproxy:haproxy caddy:caddy prometheus:promtool python3:python3 php-cli:php ruby:ruby default-jdk-headless:javac

# The parts of the tests run side by side, because the browser and the killed servers mostly wait.
test: deps ## run every test once, without the race detector
	$(GO) vet ./...
	@test -n "$(RIGGED)" || { echo "no package has fail points"; exit 1; }
	$(GO) vet -tags failpoints $(RIGGED)
	TMPDIR="$${TMPDIR:-$(ROOMY)}" $(MAKE) --no-print-directory --output-sync=target -j 3 \
	  go-test browser-test chaos-test failpoint-test verify-webhooks web-check extension-check demo-check
	@echo "ok: all tests passed"

.PHONY: go-test failpoint-test chaos-test
go-test:
	GOGC=400 $(GO) test $(QUICK) $(PARALLEL) -timeout 60m $(LONGEST) \
	  $$($(GO) list ./... | grep -vxF "$$($(GO) list $(CHAOS))")

# Continuous integration runs it after "make test". The detector more than doubles the time of the tests.
.PHONY: race
race: deps ## repeat the tests of concurrent code with the race detector
	TMPDIR="$${TMPDIR:-$(ROOMY)}" CGO_ENABLED=1 GOGC=400 $(GO) test $(RACE) $(QUICK) $(PARALLEL) -timeout 60m $(LONGEST) \
	  $$($(GO) list ./... | grep -vxF "$$($(GO) list $(CHAOS) $(ALONE))")

failpoint-test:
	$(GO) test $(QUICK) -tags failpoints -run FailPoint ./internal/store

chaos-test: ## run the short form of the chaos tests
	$(GO) test $(QUICK) -timeout 60m -skip 'LostServers|RollingUpgrade|ProductionCheck|LostNotices|StandbyThatLags|MistakesOfSharing' $(CHAOS)

.PHONY: openapi lint-api
openapi: ## update the OpenAPI document, its examples and the golden files (docs/decisions/0008)
	$(GO) test ./internal/api -count=1 -run TestExamplesAreAccepted -update
	$(GO) test ./internal/testkit -count=1 -run 'TestExamplesOfWebhooks|TestEachKindHasAGoldenFile' -update
	$(GO) test ./internal/api/spec -count=1 -run TestCommittedDocument -update

lint-api: build ## check the OpenAPI document with Redocly and Spectral (npm, pinned)
	@./scripts/lint-api

.PHONY: clients-check
clients-check: ## generate clients from the OpenAPI document (npm and Go, pinned), and compile them with every event
	@./scripts/clients-check

.PHONY: browser-test
browser-test: ## test the dashboard in Chromium (PICTURES=directory for screenshots)
	cd internal/dash/browsertest && $(GO) vet -composites=false ./... && GOGC=400 $(GO) test ./... $(PARALLEL) -count=1 -timeout 60m -args -pictures "$(PICTURES)"

.PHONY: web web-check
web: ## build the dashboard's style sheet, scripts and templates (docs/decisions/0012)
	@./scripts/web

web-check: ## check that the result of "make web" is committed
	@./scripts/web-check

.PHONY: extension extension-check
extension: ## build bin/postern-passkey.zip, the browser extension that hands over passkeys (npm, pinned)
	@./scripts/extension

extension-check: ## check that the build of the extension is reproducible, and that its result is committed
	@./scripts/extension-check

.PHONY: demo-check
demo-check: build
	@dir=$$(mktemp -d) && ./bin/postern demo --once --dir "$$dir" --addr 127.0.0.1:0 --ops-addr 127.0.0.1:0 >"$$dir/out" \
	  && echo "ok: demo --once" && rm -rf "$$dir" || { cat "$$dir/out"; exit 1; }

test-long: deps ## repeat the end-to-end tests, fuzz every parser (LONG=60s each) and the API (10m), kill 600 times
	CGO_ENABLED=1 $(GO) test $(RACE) -timeout 60m -count=20 ./internal/testkit -engines both
	CGO_ENABLED=1 $(GO) test $(RACE) -timeout 60m -count=1 -skip 'RollingUpgrade|ProductionCheck' $(ALONE) ./internal/chaos
	./scripts/production-check
	./scripts/release-check
	./scripts/package-check
	$(MAKE) --no-print-directory deploy-check
	$(GO) test ./internal/testkit -count=1 -run 'HardTexts|LargeFile' -texts 5000 -largest 100 -timeout 60m -v
	cd internal/dash/browsertest && $(GO) test . -count=1 -run TestT13HostileTextNeverRuns -timeout 60m -v -args -strings 200
	./scripts/clients-check
	./scripts/fuzz $(LONG)
	./scripts/fuzz $(LONG_DOCUMENT) FuzzDocument
	$(GO) test ./internal/chaos -count=1 -run 'Point|Saboteur' -everything -v -timeout 20m
	$(GO) test ./internal/chaos -count=1 -run OneKey -rounds 1000 -timeout 20m -v
	$(GO) test ./internal/chaos -count=1 -run Transfers -transfer 100 -timeout 20m -v
	$(GO) test ./internal/store -count=1 -run ReaderMisses -followed 1000000 -timeout 60m -v
	$(GO) test ./internal/testkit -count=1 -run BackupsUnderLoad -backups 20 -timeout 30m -v
	$(GO) test ./internal/chaos -count=1 -run RollingRestart -rolls 20 -rate 300 -timeout 30m -v
	$(GO) test ./internal/chaos -count=1 -run RollingUpgrade -rate 300 -timeout 30m -v
	$(GO) test ./internal/chaos -count=1 -run FlatOut -flatout 500 -database $(DATABASE) -timeout 30m -v
	$(GO) test ./internal/api -count=1 -run 'Exact|UsageIsTrue' -histories 1000 -timeout 20m -v
	$(GO) test ./internal/api -count=1 -run TwoWorkspaces -requests 1000000 -timeout 5h -v
	$(GO) test ./internal/dash -count=1 -run EveryForm -pairs -timeout 20m -v
	$(MAKE) --no-print-directory chaos CYCLES=100

CYCLES  ?= 100
SECONDS ?= 0
SEED    ?= 0
DATABASE ?= sqlite

chaos: ## kill the gateway under load and check its promises (CYCLES= or SECONDS=, SEED=, DATABASE=postgres, or NODES=3 on PostgreSQL)
ifeq ($(NODES),1)
	$(GO) test ./internal/chaos -count=1 -run Kills -mix -cycles $(CYCLES) -seconds $(SECONDS) -seed $(SEED) -database $(DATABASE) -timeout 120m -v
else
	$(GO) test ./internal/chaos -count=1 -run LostServers -nodes $(NODES) -losses $(CYCLES) -seed $(SEED) -timeout 240m -v
endif

SOAK ?= 30m

.PHONY: soak
soak: ## work for half an hour, and compare memory, goroutines and descriptors at its end with its beginning (SOAK=30m, DATABASE=postgres)
	$(GO) test ./internal/chaos -count=1 -run Soaked -soak $(SOAK) -soak-out "$(CURDIR)/bench/results/$$(date -u +%F-%H%M%S)-soak" \
	  -database $(DATABASE) -timeout 180m -v

lint: ## run vet and golangci-lint (pinned), with and without fail points
	$(GO) vet ./...
	$(GO) run $(LINT) run ./...
	$(GO) run $(LINT) run --build-tags failpoints ./internal/...

bench: ## measure figures and bare limits, into bench/results (BENCH=devices|accept|device|inbound|link|files|group|deliver|slow|recover|isolate|memory|empty|pages|search|neighbour|nodes|scale|restart for one)
	@./scripts/bench "$(BENCH)"

.PHONY: release release-check package-check
release: ## build the archives, SBOMs and checksums of a release into dist (VERSION=v0.1.0; TARGETS=linux/amd64 for one system)
	./scripts/release

package-check: ## install, upgrade, remove and purge the Debian package in a copy of the file system (as root)
	./scripts/package-check

.PHONY: deploy-check
deploy-check: ## lint the Dockerfile, the compose file and the Helm chart, and try their settings
	cd tools/deploy && $(GO) vet ./... && $(GO) test ./... -count=1

release-check: ## build the release of the last commit twice, and compare the files
	./scripts/release-check

.PHONY: verify-webhooks
verify-webhooks: ## verify captured deliveries with npm standardwebhooks and svix (downloaded, pinned)
	@dir=$$(mktemp -d) && cp scripts/webhooks/* "$$dir" && $(GO) test ./internal/webhook -count=1 -run Captured -capture "$$dir/deliveries.jsonl" \
	  && (cd "$$dir" && npm ci --silent --no-audit --no-fund && node verify.js deliveries.jsonl) && echo "ok: deliveries verified" && rm -rf "$$dir"

fmt: ## format the Go code
	gofmt -w $$(git ls-files '*.go')
