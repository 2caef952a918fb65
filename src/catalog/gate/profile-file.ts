import { readDocument } from '../../document/document.js';
import type { Field } from '../../document/field.js';
import { breakingCodes } from '../diff/breaking.js';
import { type AllowedChange, type GateProfile, defaultGateProfile } from './gate-profile.js';

/** Maximum number of accepted changes. */
const maxAllowed = 10_000;

/** Maximum length of a profile. */
const maxLength = 1024 * 1024;

/**
 * Reads a profile: `baseImages`, `registries`, `prunableChannels`, `scannedSubscriptions`, `scannedFrom`, `allowed`; missing fields
 * have their defaults. Throws DiagnosticsError with all problems.
 */
export function parseGateProfile(text: string, file: string): GateProfile {
  const { root, diagnostics } = readDocument(text, file, { maxLength, noun: 'profile' });
  const keys = [
    'baseImages',
    'registries',
    'prunableChannels',
    'scannedSubscriptions',
    'scannedFrom',
    'allowed',
  ] as const;
  const fields = root.object(keys);
  const profile = {
    baseImages: fields?.baseImages.optionalTextList() ?? defaultGateProfile.baseImages,
    registries: fields?.registries.optionalTextList() ?? defaultGateProfile.registries,
    prunableChannels: fields?.prunableChannels.optionalTextList() ?? defaultGateProfile.prunableChannels,
    scannedSubscriptions:
      fields?.scannedSubscriptions.optionalTextList() ?? defaultGateProfile.scannedSubscriptions,
    scannedFrom:
      fields?.scannedFrom.optionalMatching(isTime, 'a time such as 2025-01-31T00:00:00Z') ??
      defaultGateProfile.scannedFrom,
    allowed: (fields?.allowed.optionalList(maxAllowed) ?? []).flatMap((item) => readAllowed(item) ?? []),
  };
  diagnostics.throwIfErrors();
  return profile;
}

const isTime = (value: string): boolean => !Number.isNaN(Date.parse(value));

function readAllowed(item: Field): AllowedChange | undefined {
  const fields = item.object(['code', 'package', 'channel', 'bundle', 'reason', 'expires']);
  const code = fields?.code.choice(breakingCodes);
  const packageName = fields?.package.text();
  const reason = fields?.reason.text();
  const expires = fields?.expires.matching(isTime, 'a date such as 2026-12-31');
  if (fields === undefined || code === undefined || packageName === undefined) return undefined;
  if (reason === undefined || expires === undefined) return undefined;
  const [channel, bundle] = [fields.channel.optionalText(), fields.bundle.optionalText()];
  return { code, package: packageName, channel, bundle, reason, expires };
}
