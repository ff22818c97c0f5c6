//go:build pinned

// Package containerlab names the program to build, so that go.sum covers it.
package containerlab

import _ "github.com/srl-labs/containerlab"
