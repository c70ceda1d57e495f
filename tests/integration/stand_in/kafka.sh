#!/bin/sh
# What the entry point of apache/kafka does: the jars' own wrapper writes the settings from the variables, then the broker takes over.
set -eu
export CLUSTER_ID="${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}"
java -cp '/opt/kafka/libs/*' kafka.docker.KafkaDockerWrapper setup --default-configs-dir /etc/kafka/docker --mounted-configs-dir /mnt/shared/config --final-configs-dir /opt/kafka/config
exec java $KAFKA_HEAP_OPTS -cp '/opt/kafka/libs/*' kafka.Kafka /opt/kafka/config/server.properties
