import { type GoMap, GoStruct } from '../go-values.js';
import { type FunctionTable, define, lacking } from './define.js';

/** Constant results for random functions of Helm, which name no image. */
const text = 'opmate';

const repeated = (character: string) =>
  define('i', ([length], { budget }) => {
    budget.requireLength(length);
    return character.repeat(Math.max(0, length));
  });
const letters = repeated('a');
const certificate = define(
  'a*',
  () => new GoStruct('sprig.certificate', { Cert: text, Key: text }, { Cert: text, Key: text }),
);

/** Functions whose results are random or come from a cluster. */
export const placeholderFunctions: FunctionTable = {
  randAlphaNum: letters,
  randAlpha: letters,
  randAscii: letters,
  randNumeric: repeated('0'),
  randBytes: define('i', () => ''),
  uuidv4: define('', () => '00000000-0000-4000-8000-000000000000'),
  bcrypt: define('s', () => text),
  htpasswd: define('ss', ([user]) => `${user}:${text}`),
  derivePassword: define('a*', () => text),
  genPrivateKey: define('s', () => text),
  genCA: certificate,
  genCAWithKey: certificate,
  buildCustomCert: certificate,
  genSelfSignedCert: certificate,
  genSelfSignedCertWithKey: certificate,
  genSignedCert: certificate,
  genSignedCertWithKey: certificate,
  getHostByName: define('s', () => ''),
  // Finds nothing, as `helm template` does without a cluster.
  lookup: define('ssss', (): GoMap => ({})),
  encryptAES: define('ss', () => text),
  decryptAES: lacking('decryptAES', 'decryption is not supported'),
};
