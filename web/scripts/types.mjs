// Writes src/api/types.ts from the models of greenroom/http/schemas.py: npm run types
import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';

const python = existsSync('../.venv/bin/python') ? '../.venv/bin/python' : "python3";
const dump = `
import importlib.util, inspect, json, sys, typing
from pydantic import BaseModel
spec = importlib.util.spec_from_file_location("schemas", sys.argv[1])
module = importlib.util.module_from_spec(spec); sys.modules["schemas"] = module; spec.loader.exec_module(module)
found = []
for name, value in vars(module).items():
    if typing.get_origin(value) is typing.Literal:
        found.append([name, "", {"enum": list(typing.get_args(value))}, False])
    elif inspect.isclass(value) and issubclass(value, BaseModel) and name not in ("BaseModel", "Fields", "Input", "Page"):
        base = next((b.__name__ for b in value.__bases__ if b.__name__ not in ("Fields", "Input")), "")
        found.append([name, base, value.model_json_schema(), issubclass(value, module.Input)])
print(json.dumps(found))
`;
const path = process.argv[2] ?? '../src/greenroom/http/schemas.py';
const models = JSON.parse(execFileSync(python, ['-c', dump, path], { encoding: 'utf8' }));
const unions = new Map(models.filter(([, , schema]) => schema.enum).map(([name, , schema]) => [schema.enum.join(), name]));

function type(schema, name = '') {
  if (schema.$ref) return schema.$ref.split('/').at(-1);
  if (schema.enum) return unions.get(schema.enum.join()) !== name ? (unions.get(schema.enum.join()) ?? literals(schema)) : literals(schema);
  if (schema.anyOf) return schema.anyOf.map((part) => type(part)).join(' | ');
  if (schema.type === 'array') return /[ |]/.test(type(schema.items)) ? `(${type(schema.items)})[]` : `${type(schema.items)}[]`;
  if (schema.type === 'object') return `Record<string, ${schema.additionalProperties?.type || schema.additionalProperties?.$ref ? type(schema.additionalProperties) : 'unknown'}>`;
  return { integer: 'number', number: 'number', string: 'string', boolean: 'boolean', null: 'null' }[schema.type] ?? 'unknown';
}
const literals = (schema) => schema.enum.map((value) => `'${value}'`).join(' | ');

let text = '// Written by `npm run types` from src/greenroom/http/schemas.py. Do not edit.\n\n';
text += 'export interface Page<T> {\n  items: T[];\n  next: string | null;\n  total: number | null;\n}\n';
for (const [name, base, schema, isInput] of models) {
  text += '\n';
  if (schema.enum) {
    text += `export type ${name} = ${type(schema, name)};\n`;
    continue;
  }
  const inherited = new Set(base ? Object.keys(models.find(([other]) => other === base)[2].properties) : []);
  text += `/** ${schema.description.split('\n')[0]} */\nexport interface ${name}${base ? ` extends ${base}` : ''} {\n`;
  for (const [field, value] of Object.entries(schema.properties))
    if (!inherited.has(field)) text += `  ${field}${isInput && !schema.required?.includes(field) ? '?' : ''}: ${type(value)};\n`;
  text += '}\n';
}
writeFileSync('src/api/types.ts', text);
