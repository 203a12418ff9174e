// The Prometheus operator's definitions of its kinds, which `make charts-tools` takes from its module.
// A module of its own: nothing of it is compiled, and what it requires must not choose the versions of the others.
module groupwright/charts/tools/crds

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
