import { describe, expect, it } from 'vitest';
import { encodeData } from '../../../../src/cli/reports/encode-data.js';
import { RawJson } from '../../../../src/document/json.js';

describe('encodeData', () => {
  const value = {
    name: 'widget',
    missing: undefined,
    nothing: null,
    list: [{ missing: undefined, raw: new RawJson('{"big":12345678901234567890}') }],
  };

  it('omits undefined fields from JSON', () => {
    expect(encodeData(value, 'json', { indent: 0 })).toBe(
      '{"name":"widget","nothing":null,"list":[{"raw":{"big":12345678901234567890}}]}\n',
    );
  });

  it('omits undefined fields from YAML', () => {
    expect(encodeData(value, 'yaml')).toBe(
      'list:\n- raw:\n    big: 12345678901234567890\nname: widget\nnothing: null\n',
    );
  });
});
