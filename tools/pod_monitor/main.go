// Decodes a PodMonitor strictly, as Prometheus's operator would: a field that it doesn't know, or one
// that is there twice, is an error. Reads YAML from its standard input.
package main

import (
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &monitoring.PodMonitor{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
