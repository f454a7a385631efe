// franz-go on a cluster with SASL_SSL: go run secured.go SERVERS CA USER PASSWORD TOPIC GROUP.
// It writes one record and reads it as a member of a group; the first error ends it.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func main() {
	servers, ca, user, password, topic, group := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6]
	pem, err := os.ReadFile(ca)
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(servers, ",")...),
		kgo.DialTLSConfig(&tls.Config{RootCAs: roots}),
		kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha256Mechanism()),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	check(err)
	defer client.Close()
	limit, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	record := &kgo.Record{Topic: topic, Value: []byte("from Go")}
	check(client.ProduceSync(limit, record).FirstErr())
	fetches := client.PollFetches(limit)
	check(fetches.Err())
	fetches.EachRecord(func(record *kgo.Record) { fmt.Println(string(record.Value)) })
	check(client.CommitUncommittedOffsets(limit))
}
