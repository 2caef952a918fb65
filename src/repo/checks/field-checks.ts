import { quoteGo } from '../../core/go-json-quote.js';
import { parseVersion, tryParse } from '../../core/semver.js';
import { capabilityLevels, standardCategories } from '../../bundle/validate/operatorhub.js';
import { type JsonValue, isJsonObject } from '../../document/json.js';
import { getText, getValue } from '../../document/json-fields.js';
import type { CheckedBundle } from './bundle-model.js';
import { type Check, type CheckedOperator, type ReportFinding, placeIn } from './check.js';

/** A field that a ClusterServiceVersion must or should have. */
interface RequiredField {
  path: readonly string[];
  isValid(value: JsonValue): boolean;
  /** Of the hint: `use EXPECTED`. */
  expected: string;
  isRequired?: boolean;
}

const isText =
  (min: number, max = Infinity) =>
  (value: JsonValue) =>
    typeof value === 'string' && value.length >= min && value.length <= max;
const isHttpUrl = (value: JsonValue): boolean => typeof value === 'string' && /^https?:\/\/.+/.test(value);
const isTag = (value: JsonValue): boolean =>
  typeof value === 'string' && /^\S+\/[^\s/]+[:@][^\s/]+$/.test(value);
const isEmail = (value: JsonValue | undefined): boolean =>
  typeof value === 'string' && /^[^\s@]+@[^\s@]+$/.test(value);

/** Reports whether a value is a list of objects that `isItem` accepts, with at least one. */
const isListOf = (isItem: (item: JsonValue) => boolean) => (value: JsonValue) =>
  Array.isArray(value) && value.length > 0 && value.every(isItem);

const isIcon = (item: JsonValue): boolean =>
  isJsonObject(item) &&
  /^image\/(?:gif|jpe?g|png|svg\+xml)$/.test(getText(item, 'mediatype')) &&
  isBase64(getText(item, 'base64data'));

function isBase64(text: string): boolean {
  const compact = text.replace(/\s/g, '');
  return compact !== '' && compact.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(compact);
}

function isTime(value: JsonValue): boolean {
  if (typeof value !== 'string') return false;
  const isForm =
    /^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}(?::?\d{2}(?::?\d{2}(?:[.,]\d+)?)?)?(?:Z|[+-]\d{2}(?::?\d{2})?)?)?$/i;
  return isForm.test(value) && !Number.isNaN(Date.parse(value.slice(0, 10)));
}

const annotation = (name: string): readonly string[] => ['metadata', 'annotations', name];
const isCategories = (value: JsonValue): boolean =>
  typeof value === 'string' && value.split(',').every((item) => standardCategories.has(item.trim()));

/** Fields in the order of the pipeline. (Source: check_required_fields of operator-pipelines.) */
const fields: readonly RequiredField[] = [
  {
    path: annotation('capabilities'),
    isValid: (value) => typeof value === 'string' && capabilityLevels.has(value),
    expected: `one of ${[...capabilityLevels].join(', ')}`,
  },
  {
    path: annotation('categories'),
    isValid: isCategories,
    expected: 'categories of OperatorHub, separated by commas',
  },
  { path: annotation('containerImage'), isValid: isTag, expected: 'an image with a tag or digest' },
  { path: annotation('createdAt'), isValid: isTime, expected: 'a time such as 2026-01-31T00:00:00Z' },
  { path: annotation('repository'), isValid: isHttpUrl, expected: 'an HTTP or HTTPS URL' },
  { path: annotation('support'), isValid: isText(3), expected: 'at least 3 characters' },
  { path: annotation('description'), isValid: isText(10), expected: 'at least 10 characters' },
  { path: ['spec', 'displayName'], isValid: isText(3, 50), expected: '3 to 50 characters', isRequired: true },
  {
    path: ['spec', 'description'],
    isValid: isText(20),
    expected: 'at least 20 characters',
    isRequired: true,
  },
  {
    path: ['spec', 'icon'],
    isValid: isListOf(isIcon),
    expected: 'an image in base64 with its media type',
    isRequired: true,
  },
  {
    path: ['spec', 'version'],
    isValid: (value) => typeof value === 'string' && tryParse(parseVersion, value) !== undefined,
    expected: 'a version such as 1.2.3',
    isRequired: true,
  },
  {
    path: ['spec', 'maintainers'],
    isValid: isListOf((item) => isText(3)(getText(item, 'name')) && isEmail(getValue(item, 'email'))),
    expected: 'a list of name and email',
    isRequired: true,
  },
  {
    path: ['spec', 'provider', 'name'],
    isValid: isText(3),
    expected: 'at least 3 characters',
    isRequired: true,
  },
  {
    path: ['spec', 'links'],
    isValid: isListOf((item) => isText(3)(getText(item, 'name')) && isHttpUrl(getText(item, 'url'))),
    expected: 'a list of name and url',
    isRequired: true,
  },
  {
    path: ['spec', 'keywords'],
    isValid: isListOf((item) => isText(3)(item)),
    expected: 'a list of words',
  },
];

function checkRequiredFields(bundle: CheckedBundle, _operator: CheckedOperator, report: ReportFinding): void {
  const csv = bundle.getCsv();
  for (const { path, isValid, expected, isRequired = false } of fields) {
    const value = getValue(csv.value, ...path) ?? null;
    const severity = isRequired ? 'error' : 'warning';
    const name = path.join('.');
    if (value === null) report(severity, `${name}: missing`, placeIn(csv, path, `add ${expected}`));
    else if (!isValid(value))
      report(severity, `${name}: invalid value`, placeIn(csv, path, `use ${expected}`));
  }
}

/** Links that a bundle of the marketplace must have, by annotation. */
const marketplaceLinks = { 'remote-workflow': 'pricing', 'support-workflow': 'support' } as const;

const marketplace: Check = {
  name: 'check_marketplace_annotation',
  suite: 'isv',
  summary: 'bundles of the marketplace link to its pages',
  of: 'bundle',
  run(bundle, operator, report, { repositoryConfig }) {
    if (getText(repositoryConfig.value, 'organization') !== 'redhat-marketplace') return;
    const csv = bundle.getCsv();
    for (const [name, page] of Object.entries(marketplaceLinks)) {
      const key = `marketplace.openshift.io/${name}`;
      const base = `https://marketplace.redhat.com/en-us/operators/${operator.name}`;
      const expected = `${base}/${page}?utm_source=openshift_console`;
      const value = getText(csv.value, ...annotation(key));
      if (value === expected) continue;
      const problem =
        value === '' ? `annotation ${key} is missing` : `annotation ${key} is ${quoteGo(value)}`;
      report('error', problem, placeIn(csv, annotation(key), `set it to ${expected}`));
    }
  },
};

export const fieldChecks: readonly Check[] = [
  {
    name: 'check_required_fields',
    suite: 'community',
    summary: 'the ClusterServiceVersion has all fields that OperatorHub shows',
    of: 'bundle',
    run: checkRequiredFields,
  },
  marketplace,
];
