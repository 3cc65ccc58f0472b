// The two catalogues have the same keys and the same variables, and the source uses each of them.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

const flat = (value, path = []) =>
  typeof value === 'string' ? [[path.join('.'), value]] : Object.entries(value).flatMap(([key, inner]) => flat(inner, [...path, key]));
const catalogue = (language) =>
  new Map(
    readdirSync(`src/i18n/${language}`)
      .filter((name) => name.endsWith('.json'))
      .sort()
      .flatMap((name) => flat(JSON.parse(readFileSync(`src/i18n/${language}/${name}`, 'utf8')), [name.replace('.json', '')])),
  );
const stem = (key) => key.replace(/_(one|other|zero)$/, '');
const en = catalogue('en');
const zh = catalogue('zh');
const source = readdirSync('src', { recursive: true })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => readFileSync(`src/${name}`, 'utf8'))
  .join('\n');

test('both catalogues have the same keys', () => {
  const stems = (map) => [...new Set([...map.keys()].map(stem))].sort();
  assert.deepEqual(stems(zh), stems(en));
});

test('both texts of a key have the same variables', () => {
  const names = (text) => [...new Set([...text.matchAll(/\{\{(\w+)/g)].map((match) => match[1]))].sort();
  for (const [key, text] of zh) {
    const other = en.get(key) ?? en.get(`${stem(key)}_other`);
    assert.deepEqual(names(text), names(other), key);
  }
});

test('every key is used, and every key that is used exists', () => {
  const literal = new Set([...source.matchAll(/['"`]((?:[a-z_A-Z]+)(?:\.[a-zA-Z0-9_]+)+)['"`]/g)].map((match) => match[1]));
  const prefixes = [...source.matchAll(/`((?:[a-z_A-Z]+\.)+)\$\{/g)].map((match) => match[1]);
  const stems = new Set([...en.keys()].map(stem));
  const unused = [...stems].filter((key) => !literal.has(key) && !prefixes.some((prefix) => key.startsWith(prefix)));
  assert.deepEqual(unused, []);
  const called = [...source.matchAll(/\bt\(\s*['"]([\w.]+)['"]/g)].map((match) => match[1]);
  assert.deepEqual(called.filter((key) => !stems.has(key)), []);
});

test('every key that is built of a choice of words exists', () => {
  const stems = new Set([...en.keys()].map(stem));
  const missing = [];
  let found = 0;
  for (const file of readdirSync('src', { recursive: true }).filter((name) => name.endsWith('.tsx'))) {
    const text = readFileSync(`src/${file}`, 'utf8');
    for (const [, prefix, name] of text.matchAll(/\bt\(`([\w.]+\.)\$\{(\w+)\}`/g)) {
      // The words that a `const` of this name may be: what stands behind `?` and `:` of its choice.
      for (const [, choice] of text.matchAll(new RegExp(`const ${name} = ([^;\\n]*\\?[^;\\n]*);`, 'g')))
        for (const [, word] of choice.matchAll(/[?:]\s*'(\w+)'/g)) {
          found += 1;
          if (!stems.has(prefix + word)) missing.push(`${file}: ${prefix}${word}`);
        }
    }
  }
  assert.ok(found >= 3, 'the choices are found');
  assert.deepEqual([...new Set(missing)], []);
});

test('no visible text is outside the catalogues', () => {
  const found = readdirSync('src', { recursive: true })
    .filter((name) => name.endsWith('.tsx'))
    .flatMap((name) =>
      readFileSync(`src/${name}`, 'utf8')
        .split('\n')
        .filter((line) => /(?:aria-label|title|placeholder|alt)="[^"]*[A-Za-z]{2}/.test(line) || /<\w+[^<>{}=]*>[^<>{}]*[A-Za-z]{2,}[^<>{}]*<\//.test(line))
        .map((line) => `${name}: ${line.trim()}`),
    );
  assert.deepEqual(found, []);
});
