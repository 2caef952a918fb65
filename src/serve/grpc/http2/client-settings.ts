import {
  ConnectionError,
  createViolation,
  defaultFrameSize,
  errorCodes,
  maxFrameSize,
  maxWindow,
  settingIds,
} from './protocol.js';

const defaultTableSize = 4096;

interface ClientSettings {
  /** Initial send window of streams, in bytes. */
  window?: number;
  /** Maximum payload of a frame, in bytes. */
  frameSize?: number;
  /** The client accepts a smaller header table than the default. */
  limitsTable?: boolean;
}

/** Reads the payload of a SETTINGS frame; of a repeated setting, the last value. Throws ConnectionError. */
export function readSettings(payload: Buffer): ClientSettings {
  if (payload.length % 6 !== 0) {
    throw new ConnectionError(errorCodes.FRAME_SIZE_ERROR, 'truncated SETTINGS');
  }
  const settings: ClientSettings = {};
  for (let i = 0; i < payload.length; i += 6) {
    const value = payload.readUInt32BE(i + 2);
    switch (payload.readUInt16BE(i)) {
      case settingIds.HEADER_TABLE_SIZE:
        if (value < defaultTableSize) settings.limitsTable = true;
        break;
      case settingIds.INITIAL_WINDOW_SIZE:
        if (value > maxWindow) {
          throw new ConnectionError(errorCodes.FLOW_CONTROL_ERROR, `invalid INITIAL_WINDOW_SIZE ${value}`);
        }
        settings.window = value;
        break;
      case settingIds.MAX_FRAME_SIZE:
        if (value < defaultFrameSize || value > maxFrameSize)
          throw createViolation(`invalid MAX_FRAME_SIZE ${value}`);
        settings.frameSize = value;
        break;
      case settingIds.ENABLE_PUSH:
        if (value > 1) throw createViolation(`invalid ENABLE_PUSH ${value}`);
        break;
      default:
    }
  }
  return settings;
}
