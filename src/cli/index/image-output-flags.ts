import { flag, grouped, text } from '../command/flags.js';

/** `--sign-by` of commands that push or save images. */
export const signByFlag = text(
  'file',
  'sign the image with this private key, in PEM or as cosign writes it',
  { group: 'Output' },
);

/** Flags of the commands that build images. */
export const imageOutputFlags = {
  ...grouped('Output', {
    tag: text('reference', 'image reference; pushed to it unless --save is given', { short: 't' }),
    push: flag('also push the image to --tag when --save is given'),
    save: text('place', 'save the image to oci:DIR[:TAG], oci-archive:FILE[:TAG] or docker-archive:FILE'),
  }),
  signBy: signByFlag,
};
