// Node: npm install @google-cloud/tasks @google-cloud/pubsub @grpc/grpc-js
import { CloudTasksClient } from "@google-cloud/tasks";
import { PubSub } from "@google-cloud/pubsub";
import grpc from "@grpc/grpc-js";

// Cloud Tasks reads no variable. METADATA_SERVER_DETECTION=none silences a warning about credentials.
const tasks = new CloudTasksClient({
  apiEndpoint: "127.0.0.1", port: 8085,
  sslCreds: grpc.credentials.createInsecure(),
  projectId: "demo",
});
const name = tasks.queuePath("demo", "europe-west1", "orders");
await tasks.updateQueue({ queue: { name } }); // makes it if there is none
const httpRequest = { url: "http://127.0.0.1:3000/", httpMethod: "POST", body: Buffer.from("hello") };
const [task] = await tasks.createTask({ parent: name, task: { httpRequest } });
console.log(task.name);

// Pub/Sub reads PUBSUB_EMULATOR_HOST; firebase-admin reads CLOUD_TASKS_EMULATOR_HOST.
process.env.PUBSUB_EMULATOR_HOST = "127.0.0.1:8085";
const pubsub = new PubSub({ projectId: "demo" });
const [topic] = await pubsub.topic("invoices").get({ autoCreate: true });
console.log(await topic.publishMessage({ data: Buffer.from("hello") }));
