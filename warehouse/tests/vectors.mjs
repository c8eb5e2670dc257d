// Runs the BigQuery function on every vector, in a context that has nothing beside ECMAScript, as BigQuery's has.
// Usage: node vectors.mjs key.sql keys.json
import { readFileSync } from 'node:fs';
import vm from 'node:vm';

const [, , sqlFile, vectorsFile] = process.argv;
const sql = readFileSync(sqlFile, 'utf8');
const body = sql.split('r"""')[1].split('"""')[0];
const parameters = 'namespace, route, rule, payload, method, caller, named';
const udf = vm.runInNewContext(`(function (${parameters}) {${body}})`);

const { vectors } = JSON.parse(readFileSync(vectorsFile, 'utf8'));
const faults = [];
for (const vector of vectors) {
  const payload = vector.payload_base64 ?? Buffer.from(vector.payload).toString('base64');
  const named = vector.named ? JSON.stringify(vector.named) : null;
  const said = udf(vector.namespace, vector.route, vector.rule, payload, vector.method ?? null, vector.caller ?? null, named);
  const good = vector.error
    ? said.error === vector.error && said.key === null
    : said.error === null && said.key === vector.key && said.fingerprint === vector.fingerprint;
  if (!good) faults.push({ name: vector.name, expected: vector.error ?? vector.key, said });
}

// No row may fail a query, whatever its columns hold.
const odd = [
  [[null, null, null, null, null, null, null], 'empty'],
  [['n', 'r', null, null, null, null, null], 'empty'],
  [['n', 'r', ['/a'], null, null, null, null], 'missing_part'],
  [['n', 'r', ['message-id'], null, null, null, 'not JSON'], 'missing_part'],
  [['n', 'r', ['message-id'], null, null, null, '[null]'], 'missing_part'],
  [['n', 'r', ['message-id'], null, null, null, '{"message-id": 7}'], 'missing_part'],
];
for (const [given, error] of odd) {
  const said = udf(...given);
  if (said.error !== error || said.key !== null) faults.push({ given, said });
}
console.log(JSON.stringify({ tried: vectors.length, faults }));
