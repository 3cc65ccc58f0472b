"""Three JavaScript projects from npm and one Rust crate. npm archives lack tests: those here are ours, in the
project's own runner."""

from tests.projects.project import Change, Edit, Project

NPM_TEST = ("npm", "test")
IGNORE = "node_modules/\ncoverage/\npackage-lock.json\n"

SLUGIFY_TEST = """import test from 'ava';
import slugify, {slugifyWithCounter} from './index.js';

test('words', t => {
	t.is(slugify('Foo Bar'), 'foo-bar');
	t.is(slugify('  Déjà Vu!  '), 'deja-vu');
	t.is(slugify('I ♥ Dogs'), 'i-love-dogs');
});

test('separator', t => {
	t.is(slugify('foo bar', {separator: '_'}), 'foo_bar');
	t.is(slugify('foo bar', {separator: ''}), 'foobar');
});

test('case', t => {
	t.is(slugify('fooBar'), 'foo-bar');
	t.is(slugify('fooBar', {decamelize: false}), 'foobar');
	t.is(slugify('Foo Bar', {lowercase: false}), 'Foo-Bar');
});

test('leading underscore', t => {
	t.is(slugify('_foo bar'), 'foo-bar');
	t.is(slugify('_foo bar', {preserveLeadingUnderscore: true}), '_foo-bar');
});

test('counter', t => {
	const countable = slugifyWithCounter();
	t.is(countable('foo bar'), 'foo-bar');
	t.is(countable('foo bar'), 'foo-bar-2');
	countable.reset();
	t.is(countable('foo bar'), 'foo-bar');
});
"""
SLUGIFY_TYPES = """import {expectType} from 'tsd';
import slugify from './index.js';

expectType<string>(slugify('I ♥ Dogs'));
expectType<string>(slugify('BAR and baz', {separator: '_'}));
"""

SLUGIFY = Project(
    name="@sindresorhus/slugify",
    registry="npm",
    version="2.2.1",
    kind="ava after xo, then tsd (xo writes a cache into node_modules); tests brought",
    test=NPM_TEST,
    packages=("ava@3.15.0", "tsd@0.14.0", "xo@0.38.2", "@types/node@14.18.63"),
    brought={".gitignore": IGNORE, "test.js": SLUGIFY_TEST, "index.test-d.ts": SLUGIFY_TYPES},
    right=Change(
        "Add the option maxLength, with a test.",
        (
            Edit(
                file="index.js",
                search="\t\tpreserveCharacters: [],\n",
                replace="\t\tpreserveCharacters: [],\n\t\tmaxLength: Number.POSITIVE_INFINITY,\n",
            ),
            Edit(
                file="index.js",
                search="\tif (shouldPrependUnderscore) {\n",
                replace="\tstring = string.slice(0, options.maxLength);\n\n\tif (shouldPrependUnderscore) {\n",
            ),
            Edit(
                file="index.d.ts",
                search="\treadonly preserveCharacters?: string[];\n",
                replace="""\treadonly preserveCharacters?: string[];

	/**
	How many characters the slug may have, a preserved underscore or dash not counted.

	@default Infinity
	*/
	readonly maxLength?: number;
""",
            ),
            Edit(
                file="test-max-length.js",
                replace="""import test from 'ava';
import slugify from './index.js';

test('maximum length', t => {
	t.is(slugify('Foo Bar', {maxLength: 5}), 'foo-b');
	t.is(slugify('Foo Bar'), 'foo-bar');
});
""",
            ),
        ),
    ),
    breaking=Change(
        "Keep the case of letters by default.",
        (Edit(file="index.js", search="\t\tlowercase: true,\n", replace="\t\tlowercase: false,\n"),),
    ),
)

ARG_TEST = """const arg = require('.');

const parse = (spec, ...argv) => arg(spec, { argv });

test('positional arguments', () => {
	expect(parse({}, 'hi', '--', '--there')).toEqual({ _: ['hi', '--there'] });
});

test('typed options', () => {
	const spec = { '--port': Number, '--name': String, '-p': '--port' };
	expect(parse(spec, '--port', '80', '--name=x')).toEqual({ _: [], '--port': 80, '--name': 'x' });
	expect(parse(spec, '-p', '80')).toEqual({ _: [], '--port': 80 });
});

test('counted flags', () => {
	const spec = { '--verbose': arg.COUNT, '-v': '--verbose' };
	expect(parse(spec, '-vvv', '--verbose')).toEqual({ _: [], '--verbose': 4 });
});

describe('errors', () => {
	test.each([
		[{}, ['--foo'], 'ARG_UNKNOWN_OPTION'],
		[{ '--foo': String }, ['--foo'], 'ARG_MISSING_REQUIRED_LONGARG'],
		[{ foo: String }, [], 'ARG_CONFIG_NONOPT_KEY']
	])('%p with %p is %s', (spec, argv, code) => {
		expect(() => parse(spec, ...argv)).toThrow(expect.objectContaining({ code }));
	});
});
"""

ARG = Project(
    name="arg",
    registry="npm",
    version="5.0.2",
    kind="jest with coverage; tests brought",
    test=NPM_TEST,
    packages=("chai@4.4.1", "jest@27.5.1", "prettier@2.8.8"),
    brought={".gitignore": IGNORE, "index.test.js": ARG_TEST},
    right=Change(
        "Add the flag type arg.TOGGLE, with a test.",
        (
            Edit(
                file="index.js",
                search="// Expose error class\n",
                replace="arg.TOGGLE = arg.flag((v, name, previous) => !previous);\n\n// Expose error class\n",
            ),
            Edit(
                file="index.test.js",
                search="describe('errors', () => {\n",
                replace="""test('toggled flags', () => {
	expect(parse({ '-t': arg.TOGGLE }, '-t')).toEqual({ _: [], '-t': true });
	expect(parse({ '-t': arg.TOGGLE }, '-tt')).toEqual({ _: [], '-t': false });
});

describe('errors', () => {
""",
            ),
        ),
    ),
    breaking=Change(
        "Count flags from one.",
        (Edit(file="index.js", search="(existingCount || 0) + 1", replace="(existingCount || 1) + 1"),),
    ),
)

NEGOTIATOR_TEST = """'use strict'

const { test } = require('node:test')
const assert = require('node:assert')
const { negotiate, Negotiator } = require('..')

test('nothing to negotiate', () => {
  assert.strictEqual(negotiate('', ['gzip']), null)
  assert.strictEqual(negotiate('gzip', undefined), null)
  assert.strictEqual(negotiate('gzip', []), null)
})

test('preferences', async (t) => {
  const table = [
    ['*', ['gzip'], 'gzip'],
    ['gzip', ['gzip'], 'gzip'],
    ['deflate', ['gzip'], null],
    ['gzip,deflate', ['gzip', 'deflate'], 'gzip'],
    ['gzip, deflate', ['deflate', 'gzip'], 'deflate'],
    ['deflate,gzip,', ['br', 'deflate', 'gzip'], 'deflate'],
    ['gzip,deflate', ['br', 'deflate', 'gzip'], 'deflate'],
    ['gzip;q=0.5,\\tbr;q=0.9', ['gzip', 'br'], 'br'],
    ['gzip;q=1,br', ['gzip', 'br'], 'gzip'],
    ['br;q=0.9, gzip;q=0.5,', ['gzip', 'br'], 'br'],
    ['gzip;q=0', ['gzip'], null],
    ['gzip;q=x', ['gzip'], null],
    ['gzip;q=1x', ['gzip'], 'gzip'],
    [';gzip;;q=.2', ['gzip'], 'gzip'],
    [',*;q=0.1', ['gzip'], 'gzip'],
    ['x gzip', ['gzip'], 'gzip'],
    ['x\\tgzip', ['gzip'], 'gzip'],
    ['gzip;q=,', ['gzip'], null]
  ]
  for (const [header, supported, expected] of table) {
    await t.test(header, () => assert.strictEqual(negotiate(header, supported), expected))
  }
})

test('negotiator', () => {
  assert.strictEqual(new Negotiator({ supportedValues: ['gzip'] }).negotiate('gzip'), 'gzip')
  assert.strictEqual(Negotiator().negotiate('gzip'), null)
  assert.strictEqual(new Negotiator().negotiate(undefined), null)
})

test('cache', () => {
  const cache = new Map()
  const negotiator = new Negotiator({ supportedValues: ['gzip'], cache })
  assert.strictEqual(negotiator.negotiate('gzip'), 'gzip')
  assert.strictEqual(negotiator.negotiate('gzip'), 'gzip')
  assert.strictEqual(cache.size, 1)
})
"""
NEGOTIATOR_TYPES = """import { expectType } from 'tsd'
import { negotiate, Negotiator } from '..'

expectType<'gzip' | null>(negotiate('gzip', ['gzip']))
expectType<'gzip' | null>(new Negotiator({ supportedValues: ['gzip'] }).negotiate('gzip'))
"""
NEGOTIATOR_LINT = """'use strict'

module.exports = require('neostandard')({
  ignores: require('neostandard').resolveIgnoresFromGitignore(),
  ts: true
})
"""

NEGOTIATOR = Project(
    name="@fastify/accept-negotiator",
    registry="npm",
    version="2.0.1",
    kind="node's runner with a coverage threshold of 100 %, then tsd; eslint; tests brought",
    test=NPM_TEST,
    packages=(
        "@fastify/pre-commit@2.2.0",
        "@matteo.collina/tspl@0.1.1",
        "benchmark@2.1.4",
        "c8@10.1.3",
        "eslint@9.21.0",
        "neostandard@0.12.1",
        "tsd@0.31.2",
    ),
    brought={
        ".gitignore": IGNORE,
        "eslint.config.js": NEGOTIATOR_LINT,
        "test/negotiate.test.js": NEGOTIATOR_TEST,
        "types/index.test-d.ts": NEGOTIATOR_TYPES,
    },
    right=Change(
        "Add Negotiator.accepts, which says whether anything fits, with a test.",
        (
            Edit(
                file="index.js",
                search="function negotiate (header, supportedValues) {\n",
                replace="""Negotiator.prototype.accepts = function (header) {
  return this.negotiate(header) !== null
}

function negotiate (header, supportedValues) {
""",
            ),
            Edit(
                file="types/index.d.ts",
                search="    negotiate (header: string): K | null\n",
                replace="    negotiate (header: string): K | null\n\n    accepts (header: string): boolean\n",
            ),
            Edit(
                file="test/accepts.test.js",
                replace="""'use strict'

const { test } = require('node:test')
const assert = require('node:assert')
const { Negotiator } = require('..')

test('accepts', () => {
  const negotiator = new Negotiator({ supportedValues: ['gzip'] })
  assert.strictEqual(negotiator.accepts('gzip'), true)
  assert.strictEqual(negotiator.accepts('br'), false)
})
""",
            ),
        ),
    ),
    breaking=Change(
        "Do not accept a bare star.",
        (
            Edit(
                file="index.js",
                search="    return supportedValues[0]\n",
                replace="    return null\n",
            ),
        ),
    ),
)

STRSIM = Project(
    name="strsim",
    registry="crates",
    version="0.10.0",
    kind="Rust, no dependencies; tests inside the source, in tests/ and in doc comments",
    test=("cargo", "test", "--offline", "--quiet"),
    right=Change(
        "Add normalized_hamming, with a test.",
        (
            Edit(
                file="src/lib.rs",
                search="""pub fn hamming(a: &str, b: &str) -> HammingResult {
    generic_hamming(a.chars(), b.chars())
}
""",
                replace="""pub fn hamming(a: &str, b: &str) -> HammingResult {
    generic_hamming(a.chars(), b.chars())
}

/// Calculates the share of positions in which the characters of two strings
/// are equal: 1.0 for equal strings, 0.0 for strings that differ everywhere.
///
/// ```
/// use strsim::normalized_hamming;
///
/// assert_eq!(Ok(0.75), normalized_hamming("abcd", "abcx"));
/// ```
pub fn normalized_hamming(a: &str, b: &str) -> Result<f64, StrSimError> {
    let length = a.chars().count();
    let distance = hamming(a, b)?;
    if length == 0 {
        return Ok(1.0);
    }
    Ok(1.0 - (distance as f64) / (length as f64))
}
""",
            ),
            Edit(
                file="src/lib.rs",
                search="""    #[test]
    fn hamming_empty() {
""",
                replace="""    #[test]
    fn normalized_hamming_shares() {
        assert_eq!(Ok(1.0), normalized_hamming("", ""));
        assert_eq!(Ok(0.5), normalized_hamming("ab", "ax"));
        assert_eq!(Err(StrSimError::DifferentLengthArgs), normalized_hamming("a", ""));
    }

    #[test]
    fn hamming_empty() {
""",
            ),
        ),
    ),
    breaking=Change(
        "Count each difference twice in the Hamming distance.",
        (
            Edit(
                file="src/lib.rs",
                search="if x != y { count += 1 }",
                replace="if x != y { count += 2 }",
            ),
        ),
    ),
)

PROJECTS = (SLUGIFY, ARG, NEGOTIATOR, STRSIM)
