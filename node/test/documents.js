'use strict';
// Documents of vectors/firestore.json as Firestore has them.

const fs = require('node:fs');
const path = require('node:path');
const { Timestamp } = require('@google-cloud/firestore');

// The directory of this file may be a link.
const vectors = path.join(fs.realpathSync(__dirname), '../../vectors/firestore.json');
const VECTORS = JSON.parse(fs.readFileSync(vectors, 'utf8'));

/** With bytes, and times as numbers. */
function decoded(fields) {
  return fields && Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, decodedValue(value)]));
}

function decodedValue(value) {
  if (value?.bytes !== undefined) return Buffer.from(value.bytes, 'hex');
  return value?.micros ?? value;
}

/** As it is stored. */
function asDocument(fields) {
  const document = decoded(fields);
  if (document.delete_at !== undefined) document.delete_at = Timestamp.fromMillis(document.delete_at / 1000);
  return document;
}

module.exports = { VECTORS, decoded, asDocument };
