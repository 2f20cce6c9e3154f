import { CAPS, type CollectLimitsOnWire } from '../protocol/index.ts'
import { formatValue, refuseUnknown } from '../support/index.ts'
import type { CollectCaps } from './collected-files.ts'
import { invalid } from './invalid.ts'
import type { CollectLimits } from './result.ts'

const NAMES = { maxFiles: 'files', maxFileBytes: 'fileBytes', maxTotalBytes: 'totalBytes' } as const
/** The largest limits that are allowed, because collected files are held in memory. */
const MAX_CAPS: CollectCaps = { files: 100_000, fileBytes: 2 ** 31, totalBytes: 2 ** 31 }

/**
 * Checks the limits of a collection and adds the defaults.
 * @throws SandglassError `invalid_request` naming the limit; TypeError for one that does not exist.
 */
export function checkCollectLimits(given: unknown): CollectCaps {
  if (given === undefined) return CAPS
  if (typeof given !== 'object' || given === null)
    throw invalid('collectLimits', `${formatValue(given)} is not an object of limits`)
  refuseUnknown('collectLimits', given, Object.keys(NAMES))
  const caps = { files: CAPS.files, fileBytes: CAPS.fileBytes, totalBytes: CAPS.totalBytes }
  for (const [option, name] of Object.entries(NAMES)) {
    const value = (given as Record<string, unknown>)[option as keyof CollectLimits] ?? caps[name]
    if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > MAX_CAPS[name])
      throw invalid(
        `collectLimits.${option}`,
        `${formatValue(value)} is not a whole number from 1 to ${MAX_CAPS[name]}`,
      )
    caps[name] = value
  }
  return caps
}

/** Converts the caps to the field names of the protocol. */
export function onWire({ files, fileBytes, totalBytes }: CollectCaps): CollectLimitsOnWire {
  return { max_files: files, max_file_bytes: fileBytes, max_total_bytes: totalBytes }
}
