import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RawJson, type JsonValue } from '../../../src/document/json.js';
import { formatMessage } from '../../../src/core/diagnostic.js';
import { findPropertyFault, parsePackageProperty } from '../../../src/model/properties.js';

describe('model/properties', () => {
  it.each<[string, JsonValue, string]>([
    ['olm.gvk', 'x', 'string into Go value of type property.GVK'],
    ['olm.gvk', ['x'], 'array into Go value of type property.GVK'],
    ['olm.gvk.required', { kind: true }, 'bool into Go struct field GVKRequired.kind of type string'],
    ['olm.package', { version: 1.1 }, 'number into Go struct field Package.version of type string'],
    ['olm.package', { release: 1 }, 'number into Go struct field Package.release of type string'],
    [
      'olm.package.required',
      { Versionrange: {} },
      'object into Go struct field PackageRequired.versionRange of type string',
    ],
    ['olm.bundle.object', { data: {} }, 'object into Go struct field BundleObject.data of type []uint8'],
    ['olm.channel', { channelName: 1 }, 'number into Go struct field Channel.channelName of type string'],
    ['olm.csv.metadata', 5, 'number into Go value of type property.CSVMetadata'],
    [
      'olm.csv.metadata',
      { annotations: [] },
      'array into Go struct field CSVMetadata.annotations of type map[string]string',
    ],
    [
      'olm.csv.metadata',
      { labels: { a: 1 } },
      'number into Go struct field CSVMetadata.labels of type string',
    ],
    [
      'olm.csv.metadata',
      { keywords: 'a, b' },
      'string into Go struct field CSVMetadata.keywords of type []string',
    ],
    [
      'olm.csv.metadata',
      { links: ['x'] },
      'string into Go struct field CSVMetadata.links of type v1alpha1.AppLink',
    ],
    [
      'olm.csv.metadata',
      { installModes: [{ supported: 'true', type: 'x' }] },
      'string into Go struct field InstallMode.installModes.supported of type bool',
    ],
    [
      'olm.csv.metadata',
      { apiServiceDefinitions: { owned: [{ containerPort: 1.5 }] } },
      'number 1.5 into Go struct field APIServiceDescription.apiServiceDefinitions.owned.containerPort of type int32',
    ],
    [
      'olm.csv.metadata',
      { crdDescriptions: { owned: [{ specDescriptors: [{ 'x-descriptors': [1] }] }] } },
      'number into Go struct field SpecDescriptor.crdDescriptions.owned.specDescriptors.x-descriptors of type string',
    ],
  ])('refuses %s %j', (type, value, problem) => {
    expect(findPropertyFault({ type, value }, 3)).toEqual({
      severity: 'error',
      code: type === 'olm.package' ? 'invalid-package' : 'invalid-property',
      subject: `parse property[3] of type "${type}"`,
      problem: `json: cannot unmarshal ${problem}`,
      path: ['properties', 3, 'value'],
    });
  });

  it('refuses a property without a value, of a known type or not, but not a null', () => {
    const fault = findPropertyFault({ type: 't', value: null, valueMissing: true }, 0);
    const message = 'parse property[0] of type "t": unexpected end of JSON input';
    expect(fault && formatMessage(fault)).toBe(message);
    expect(findPropertyFault({ type: 't', value: null }, 0)).toBeUndefined();
    expect(findPropertyFault({ type: 'olm.gvk', value: null }, 0)).toBeUndefined();
  });

  it('accepts other types, unknown fields and nulls', () => {
    expect(findPropertyFault({ type: 'olm.constraint', value: 'x' }, 0)).toBeUndefined();
    expect(
      findPropertyFault({ type: 'olm.gvk', value: { group: null, constructor: 1, x: [] } }, 0),
    ).toBeUndefined();
    const descriptor = { 'x-descriptors': null, value: { any: [1] } };
    const value = { crdDescriptions: { owned: [{ specDescriptors: [descriptor, null] }], required: null } };
    expect(findPropertyFault({ type: 'olm.csv.metadata', value }, 0)).toBeUndefined();
  });

  it('reads fields in any case, the last of several', () => {
    expect(parsePackageProperty({ PackageName: 'a', VERSION: '1.0.0', version: '2.0.0' })).toEqual({
      packageName: 'a',
      version: '2.0.0',
      release: '',
    });
    expect(parsePackageProperty({ verſion: '1.0.0' }).version).toBe('1.0.0');
    expect(parsePackageProperty(null)).toEqual({ packageName: '', version: '', release: '' });
  });

  it('reads a value that is kept as text', () => {
    expect(parsePackageProperty(new RawJson('{"packageName":"p","version":"1.0.0"}'))).toEqual({
      packageName: 'p',
      version: '1.0.0',
      release: '',
    });
    expect(() => parsePackageProperty(new RawJson('[]'))).toThrow(
      'json: cannot unmarshal array into Go value of type property.Package',
    );
  });

  it('returns a result for every JSON value', () => {
    const types = fc.constantFrom('olm.package', 'olm.csv.metadata', 'olm.bundle.object', 'olm.gvk', 'x');
    fc.assert(
      fc.property(types, fc.jsonValue(), (type, value) => {
        const fault = findPropertyFault({ type, value: value as JsonValue }, 0);
        expect(fault === undefined || fault.problem.includes('json: cannot unmarshal ')).toBe(true);
      }),
    );
  });
});
