# gcloud: the slash at the end belongs there
export CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDTASKS=http://127.0.0.1:8085/
export CLOUDSDK_API_ENDPOINT_OVERRIDES_PUBSUB=http://127.0.0.1:8085/
export CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true
export CLOUDSDK_CORE_PROJECT=demo

gcloud tasks queues create orders --location=europe-west1
gcloud tasks create-http-task --queue=orders --location=europe-west1 --url=http://127.0.0.1:3000/ --body-content=hello
gcloud pubsub topics create invoices
gcloud pubsub topics publish invoices --message=hello
