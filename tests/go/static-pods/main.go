// Command static-pods says what the Go kubelet makes of manifests: `uids NODE FOLDER` prints the UID of the pod of each
// file as JSON, read by the kubelet's own source of files; `texts FOLDER` the text that it
// hashes, and `sums FOLDER` the MD5 sums of those; `fields` the fields of
// the types that are in that text, in their order, with their names in JSON.
package main

import (
	"crypto/md5"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/dump"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/kubelet/config"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

func main() {
	switch os.Args[1] {
	case "uids":
		uids(os.Args[2], os.Args[3])
	case "texts":
		for file, text := range texts(os.Args[2]) {
			fmt.Printf("%s\n%s\n", file, text)
		}
	case "sums":
		sums := map[string]string{}
		for file, text := range texts(os.Args[2]) {
			sums[file] = fmt.Sprintf("%x", md5.Sum([]byte(text)))
		}
		show(sums)
	case "fields":
		show(fields())
	}
}

func show(value any) {
	if err := json.NewEncoder(os.Stdout).Encode(value); err != nil {
		panic(err)
	}
}

func uids(node, folder string) {
	found := map[string]string{}
	files, _ := filepath.Glob(filepath.Join(folder, "*.yaml"))
	for _, file := range files {
		updates := make(chan interface{})
		config.NewSourceFile(file, types.NodeName(node), time.Hour, updates)
		select {
		case update := <-updates:
			for _, pod := range update.(kubetypes.PodUpdate).Pods {
				found[filepath.Base(file)] = string(pod.UID)
			}
		case <-time.After(5 * time.Second):
			found[filepath.Base(file)] = ""
		}
	}
	show(found)
}

func texts(folder string) map[string]string {
	found := map[string]string{}
	files, _ := filepath.Glob(filepath.Join(folder, "*.yaml"))
	for _, file := range files {
		data, _ := os.ReadFile(file)
		data, _ = utilyaml.ToJSON(data)
		object, err := runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), data)
		if err != nil {
			panic(err)
		}
		found[filepath.Base(file)] = dump.ForHash(object)
	}
	return found
}

// A field: its name in Go, its type as the text has it, and its name in JSON, which is "" for a field of the same object
// and "-" for one that version 1 does not have.
type field [3]string

// fields are those of every struct that may have a value in a manifest.
func fields() map[string][]field {
	types := map[string][]field{}
	walk(reflect.TypeOf(core.Pod{}), reflect.TypeOf(v1.Pod{}), types)
	return types
}

func walk(inner, outer reflect.Type, types map[string][]field) {
	for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
		inner, outer = inner.Elem(), outer.Elem()
	}
	_, known := types[inner.String()]
	ours := strings.HasPrefix(inner.String(), "core.") || strings.HasPrefix(inner.String(), "v1.")
	if known || !ours || inner.Kind() != reflect.Struct || inner.String() == "v1.Time" {
		return
	}
	list := []field{}
	types[inner.String()] = list
	for i := 0; i < inner.NumField(); i++ {
		one, name := inner.Field(i), "-"
		if other, ok := outer.FieldByName(one.Name); ok {
			name = strings.Split(other.Tag.Get("json"), ",")[0]
			if inner.String() != "core.PodStatus" {
				walk(one.Type, other.Type, types)
			}
		}
		list = append(list, field{one.Name, one.Type.String(), name})
	}
	types[inner.String()] = list
}
