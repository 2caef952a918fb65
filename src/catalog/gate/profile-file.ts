import { readDocument } from '../../document/document.js';
import { type GateProfile, defaultGateProfile } from './gate-profile.js';

/** Maximum length of a profile. */
const maxLength = 1024 * 1024;

/**
 * Reads a profile: `baseImages`, `registries`, `prunableChannels`, `scannedSubscriptions`, `scannedFrom`; missing fields
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
  ] as const;
  const fields = root.object(keys);
  const isTime = (value: string): boolean => !Number.isNaN(Date.parse(value));
  const profile = {
    baseImages: fields?.baseImages.optionalTextList() ?? defaultGateProfile.baseImages,
    registries: fields?.registries.optionalTextList() ?? defaultGateProfile.registries,
    prunableChannels: fields?.prunableChannels.optionalTextList() ?? defaultGateProfile.prunableChannels,
    scannedSubscriptions:
      fields?.scannedSubscriptions.optionalTextList() ?? defaultGateProfile.scannedSubscriptions,
    scannedFrom:
      fields?.scannedFrom.optionalMatching(isTime, 'a time such as 2025-01-31T00:00:00Z') ??
      defaultGateProfile.scannedFrom,
  };
  diagnostics.throwIfErrors();
  return profile;
}
