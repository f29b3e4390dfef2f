// Package conformance names the upstream programs that scripts/conformance builds, so that go.mod and go.sum pin them.
package conformance

import (
	_ "github.com/onsi/ginkgo/v2/ginkgo/command"
	_ "k8s.io/kubernetes/test/e2e"
	_ "k8s.io/kubernetes/test/e2e_node"
)
