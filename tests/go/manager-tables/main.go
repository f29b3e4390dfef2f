// Prints what the Go kubelet's own CPU, memory and topology managers do for random machines and pods, as JSON.
//
//	go run . cpu 300 > ../../data/managers/cpu.json
//	go run . memory 60 > ../../data/managers/memory.json
//	go run . merge 700 > ../../data/managers/merge.json
//
// The second word says how many cases; the seed is fixed.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"
)

func main() {
	count, err := strconv.Atoi(os.Args[2])
	must(err)
	random := rand.New(rand.NewSource(34))
	cases := []any{}
	for range count {
		switch os.Args[1] {
		case "cpu":
			cases = append(cases, cpuCase(random))
		case "memory":
			cases = append(cases, memoryCase(context.Background(), random))
		case "merge":
			cases = append(cases, mergeCase(random))
		default:
			panic("cpu, memory or merge")
		}
	}
	fmt.Println("[")
	for at, one := range cases {
		text, err := json.Marshal(one)
		must(err)
		end := ","
		if at == len(cases)-1 {
			end = ""
		}
		fmt.Println(string(text) + end)
	}
	fmt.Println("]")
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
