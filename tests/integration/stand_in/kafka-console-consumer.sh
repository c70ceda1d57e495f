#!/bin/sh
exec java -cp '/opt/kafka/libs/*' org.apache.kafka.tools.consumer.ConsoleConsumer "$@"
