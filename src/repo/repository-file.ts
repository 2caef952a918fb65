import { ifFound } from '../core/errors.js';
import { type WrittenDocument, decodeFile, readDocument } from '../document/document.js';
import { type OperatorRepository, pathIn, readInRepository } from './repository.js';

/** Maximum size of a configuration file of a repository. */
const maxConfigSize = 1024 * 1024;

/** A configuration file with the places of its fields. */
export interface RepositoryDocument extends WrittenDocument {
  text: string;
}

/** Reads a YAML file of a repository; undefined if it is missing. Throws OpmateError. */
export async function readRepositoryFile(
  repository: OperatorRepository,
  parts: readonly string[],
  noun: string,
): Promise<RepositoryDocument | undefined> {
  const file = pathIn(repository, ...parts);
  const bytes = await ifFound(readInRepository(repository, file, maxConfigSize));
  if (bytes === undefined) return undefined;
  const text = decodeFile(bytes, file);
  return { text, ...readDocument(text, file, { maxLength: maxConfigSize, noun }) };
}
