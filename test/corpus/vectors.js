import { readFileSync } from 'node:fs';
import path from 'node:path';
import { encodeGoJson, sortKeysDeep } from '../../dist/document/go-json.js';
import { formatVersion, parseRange, parseVersion, parseTolerantVersion } from '../../dist/core/semver.js';
import { parseYaml } from '../../dist/document/yaml.js';

function linesOf(corpus, name) {
  const text = readFileSync(path.join(corpus, 'golden', 'vectors', name), 'utf8');
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

function attempt(work) {
  try {
    return { value: work() };
  } catch (error) {
    return { error: error.message };
  }
}

/** Versions, ranges and YAML scalars as the Go libraries answer them. */
export function compareVectors(corpus, report) {
  for (const [index, vector] of linesOf(corpus, 'semver.jsonl').entries()) {
    report.check(`vectors/semver.jsonl:${index + 1}`, semverDifference(vector));
  }
  for (const [index, { yaml, json, err }] of linesOf(corpus, 'yaml-to-json.jsonl').entries()) {
    const got = attempt(() => encodeGoJson(sortKeysDeep(parseYaml(yaml)), { escapeHtml: true }));
    let difference;
    if (err !== undefined && got.error === undefined)
      difference = `${JSON.stringify(yaml)}: got ${got.value}, wanted an error`;
    if (err === undefined && got.value !== json) {
      difference = `${JSON.stringify(yaml)}: got ${got.value ?? got.error}, wanted ${json}`;
    }
    report.check(`vectors/yaml-to-json.jsonl:${index + 1}`, difference);
  }
}

function semverDifference(vector) {
  const results = [];
  if (vector.range !== undefined) {
    const got = attempt(() => parseRange(vector.range).contains(parseVersion(vector.version)));
    results.push(['in', got.value, vector.in], ['err', got.error, vector.err]);
  } else {
    const strict = attempt(() => formatVersion(parseVersion(vector.parse)));
    const tolerant = attempt(() => formatVersion(parseTolerantVersion(vector.parse)));
    results.push(['v', strict.value, vector.v], ['err', strict.error, vector.err]);
    results.push(
      ['tolerant', tolerant.value, vector.tolerant],
      ['tolerantErr', tolerant.error, vector.tolerantErr],
    );
  }
  for (const [name, got, expected] of results) {
    if (got !== expected) return `${JSON.stringify(vector)}: ${name} is ${JSON.stringify(got)}`;
  }
  return undefined;
}
