// Prints what a first visit loads and what all of the page weighs, gzipped. Fails above the limits.
import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const FIRST_KB = 250;
const ALL_KB = 600;
const page = '../src/greenroom/http/page/';
const size = (path) => gzipSync(readFileSync(`${page}assets/${path}`), { level: 9 }).length / 1024;
const assets = readdirSync(`${page}assets`).filter((name) => /\.(js|css)$/.test(name));
const index = readFileSync(`${page}index.html`, 'utf8');

// The entry with what it imports at once; a language is one lazy chunk that a first visit needs too.
const first = new Set();
const visit = (name) => {
  if (first.has(name) || !assets.includes(name)) return;
  first.add(name);
  if (!name.endsWith('.js')) return;
  for (const [, other] of readFileSync(`${page}assets/${name}`, 'utf8').matchAll(/(?:from|import)\s*["']\.\/([\w.-]+)["']/g)) visit(other);
};
for (const name of assets) if (index.includes(name)) visit(name);
for (const name of assets) if (/^(en|runs)-/.test(name)) visit(name);

const sum = (names) => [...names].reduce((total, name) => total + size(name), 0);
const [firstKb, allKb] = [sum(first), sum(assets)];
console.log(`first load ${firstKb.toFixed(1)} KB of ${FIRST_KB}, all ${allKb.toFixed(1)} KB of ${ALL_KB} (gzipped)`);
if (firstKb > FIRST_KB || allKb > ALL_KB) process.exit(1);
