#!/bin/sh
# From Kafka to rejoin, by hand: writes all events of the shop's topics as one new file of JSON lines below landing/shop, as dags/shop.py reads it.
# Every call reads the topics from their beginning: rejoin counts what it has seen as duplicate. Kafka's headers are left out.
set -eu
cd "$(dirname "$0")/.."
mkdir -p landing/shop
file=landing/shop/$(date -u +%Y%m%dT%H%M%S).jsonl
tab=$(printf '\t')
for table in customers orders items; do
    topic=e6.shop.$table
    # Ends when nothing comes for five seconds, and says so as an error.
    docker compose --profile source exec -T kafka /opt/kafka/bin/kafka-console-consumer.sh --bootstrap-server kafka:9092 --topic "$topic" --from-beginning \
        --timeout-ms 5000 --property print.key=true --property "key.separator=$tab" |
        awk -F '\t' -v topic="$topic" 'NF == 2 { printf "{\"topic\": \"%s\", \"key\": %s, \"value\": %s}\n", topic, $1, $2 }'
done > "$file.tmp"
mv "$file.tmp" "$file"
wc -l "$file"
