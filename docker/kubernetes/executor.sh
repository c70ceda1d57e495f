#!/bin/sh
# What Spark's own image does when Kubernetes starts it with the argument "executor": the pod's variables as a command. PySpark's package brings no such script.
set -eu
[ "$*" = executor ] || { echo "this is an executor's pod: Spark starts it with the argument executor" >&2; exit 2; }
spark=$(python -c 'import pyspark, os; print(os.path.dirname(pyspark.__file__))')
# SPARK_JAVA_OPT_0 and on: one option each, which may have spaces.
number=0
while eval "[ -n \"\${SPARK_JAVA_OPT_$number+x}\" ]"; do
    eval "set -- \"\$@\" \"\$SPARK_JAVA_OPT_$number\""
    number=$((number + 1))
done
shift
exec java "$@" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" -cp "${SPARK_CLASSPATH:+$SPARK_CLASSPATH:}$spark/jars/*" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" --podName "$SPARK_EXECUTOR_POD_NAME"
