import { readDocument } from '../document/document.js';
import { warnOfUnknown } from '../document/field.js';

const mediaType = /^application\/vnd\.dev\.sigstore\.trustedroot(?:\+json;version=0\.\d+|\.v0\.\d+\+json)$/;
const logFields = ['baseUrl', 'hashAlgorithm', 'publicKey', 'logId', 'checkpointKeyId', 'operator'] as const;
const keyFields = ['rawBytes', 'keyDetails', 'validFor'] as const;
const authorityFields = ['subject', 'uri', 'certChain', 'validFor', 'operator'] as const;

export const trustedRootHint = 'specify a trusted_root.json of Sigstore';

/**
 * Checks the fields of a Sigstore trusted_root.json: the library ignores misspelled ones, and with them logs and times
 * of validity. Unknown fields of later versions are accepted. Throws OpmateError SYNTAX, or DiagnosticsError.
 */
export function checkRootFields(json: string, file: string): void {
  const options = { maxLength: Infinity, noun: 'trusted root', isJson: true };
  const { root, diagnostics } = readDocument(json, file, options);
  const lists = ['tlogs', 'certificateAuthorities', 'ctlogs', 'timestampAuthorities'] as const;
  const fields = root.object(['mediaType', ...lists], warnOfUnknown);
  const authorities = fields?.certificateAuthorities.list() ?? [];
  if (fields?.certificateAuthorities.isPresent && authorities.length === 0) {
    fields.certificateAuthorities.fail('no certificate authorities', { hint: trustedRootHint });
  }
  fields?.mediaType.matching((text) => mediaType.test(text), 'the media type of a trusted_root.json');
  for (const log of [fields?.tlogs, fields?.ctlogs].flatMap((list) => list?.optionalList() ?? [])) {
    const key = log.object(logFields, warnOfUnknown)?.publicKey.object(keyFields, warnOfUnknown);
    key?.validFor.optionalObject(['start', 'end'], warnOfUnknown);
  }
  for (const authority of [...authorities, ...(fields?.timestampAuthorities.optionalList() ?? [])]) {
    authority
      .object(authorityFields, warnOfUnknown)
      ?.validFor.optionalObject(['start', 'end'], warnOfUnknown);
  }
  diagnostics.throwIfErrors();
}
