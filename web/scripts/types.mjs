// Writes src/api/types.ts from the OpenAPI of the server: npm run types. With --check it compares and writes nothing.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const TARGET = 'src/api/types.ts';
const python = existsSync('../.venv/bin/python') ? '../.venv/bin/python' : 'python3';
// Events of the stream are not in the OpenAPI, nor are the names of closed sets: both come from the module of the models.
const dump = `
import inspect, json, typing
from fastapi import FastAPI
from pydantic import BaseModel
from greenroom.http import inputs, schemas
from greenroom.http.server import ROUTERS

app = FastAPI()
for router in ROUTERS:
    app.include_router(router, prefix="/api")
models = app.openapi()["components"]["schemas"]
sets = {}
for name, value in vars(schemas).items():
    if typing.get_origin(value) is typing.Literal:
        sets[name] = list(typing.get_args(value))
    elif inspect.isclass(value) and issubclass(value, schemas.Fields) and value is not schemas.Fields and "Generic" not in str(value.__bases__):
        models.setdefault(name, value.model_json_schema(mode="serialization", ref_template="#/components/schemas/{model}"))
taken = [name for name, value in vars(inputs).items() if inspect.isclass(value) and issubclass(value, inputs.Input)]
print(json.dumps({"models": models, "sets": sets, "taken": taken}, sort_keys=True))
`;
const { models, sets, taken } = JSON.parse(execFileSync(python, ['-c', dump], { encoding: 'utf8', env: { ...process.env, PYTHONPATH: '../src' } }));
const setNames = new Map(Object.entries(sets).map(([name, values]) => [values.join(), name]));

const literals = (values) => values.map((value) => `'${value}'`).join(' | ');
const nameOf = (ref) => ref.split('/').at(-1);

function type(schema) {
  if (schema.$ref) return nameOf(schema.$ref);
  if (schema.enum) return setNames.get(schema.enum.join()) ?? literals(schema.enum);
  if (schema.const !== undefined) return literals([schema.const]);
  if (schema.anyOf) return schema.anyOf.map(type).join(' | ');
  if (schema.type === 'array') return /[ |]/.test(type(schema.items)) ? `(${type(schema.items)})[]` : `${type(schema.items)}[]`;
  if (schema.type === 'object') return `Record<string, ${schema.additionalProperties?.type || schema.additionalProperties?.$ref ? type(schema.additionalProperties) : 'unknown'}>`;
  return { integer: 'number', number: 'number', string: 'string', boolean: 'boolean', null: 'null' }[schema.type] ?? 'unknown';
}

// The server sends every field, with its default; what it takes may lack those that have one.
let text = '// Written by `npm run types` from the OpenAPI of the server. Do not edit.\n\n';
text += 'export interface Page<T> {\n  items: T[];\n  next: string | null;\n  total: number | null;\n}\n';
for (const [name, values] of Object.entries(sets)) text += `\nexport type ${name} = ${literals(values)};\n`;
for (const [name, schema] of Object.entries(models).sort(([left], [right]) => (left < right ? -1 : 1))) {
  if (/^(Page_|HTTPValidationError|ValidationError)/.test(name) || schema.type !== 'object') continue;
  const about = schema.description?.split('\n')[0];
  text += `\n${about ? `/** ${about} */\n` : ''}export interface ${name} {\n`;
  for (const [field, value] of Object.entries(schema.properties ?? {})) text += `  ${field}${taken.includes(name) && !schema.required?.includes(field) ? '?' : ''}: ${type(value)};\n`;
  text += '}\n';
}
if (!process.argv.includes('--check')) writeFileSync(TARGET, text);
else if (readFileSync(TARGET, 'utf8') !== text) {
  process.stderr.write(`${TARGET} differs from the server's OpenAPI; run: npm run types\n`);
  process.exitCode = 1;
}
