// Writes every order into a ledger, once. WRONG: what was written is known to this process only, until it is saved.
//
// A crash at work is provided for: the order that is being written is noted in a file. After the answer nobody provides
// for the next second.
import { appendFileSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';

const [ledger, current, saved] = ['ledger', 'current', 'saved'].map((name) => `${process.env.DIRECTORY}/${name}`);
const SAVE_AFTER_MS = 1000;

const lines = (file) => (existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []);
const interrupted = lines(current).filter((order) => lines(ledger).includes(order));
const seen = new Set([...lines(saved), ...interrupted]);
save();

function save() {
  writeFileSync(`${saved}.new`, [...seen].join('\n'));
  renameSync(`${saved}.new`, saved);
}

function write(order) {
  if (seen.has(order)) return;
  writeFileSync(current, order);
  appendFileSync(ledger, `${order}\n`); // one line in one call: whole or not there
  seen.add(order);
  setTimeout(save, SAVE_AFTER_MS);
}

createServer((request, response) => {
  let body = '';
  request.on('data', (part) => (body += part));
  request.on('end', () => {
    write(JSON.parse(body).order);
    response.writeHead(204).end(() => rmSync(current, { force: true }));
  });
}).listen(process.env.PORT, '127.0.0.1');
