import { posix } from 'node:path'
import { type ArtifactRef, parseArtifactRef } from '../artifacts/index.ts'
import type { SandglassError } from '../errors/index.ts'
import { formatValue } from '../support/index.ts'
import { invalid } from './invalid.ts'

/** The source of an input. */
export type InputRef =
  | ({ readonly scheme: 'artifact' } & ArtifactRef)
  /** An absolute path of the host. */
  | { readonly scheme: 'host'; readonly path: string }
  /** A path relative to the workspace or to the directory of skills; `''` for that directory itself. */
  | { readonly scheme: 'workspace' | 'skill'; readonly path: string }

const SCHEMES = 'artifact://NAME[@VERSION], host:///ABSOLUTE/PATH, workspace://PATH, skill://NAME/PATH'

/** Parses the source of an input. @throws SandglassError `invalid_request` naming the scheme or the path. */
export function parseInputRef(ref: string): InputRef {
  const [, scheme, rest = ''] = /^([\w+.-]+):\/\/(.*)$/s.exec(ref) ?? []
  switch (scheme) {
    case 'artifact':
      return { scheme, ...parseArtifactRef(rest) }
    case 'host':
      if (!posix.isAbsolute(rest)) throw invalid('from', `${formatValue(ref)} has no absolute path of the host`)
      return { scheme, path: posix.normalize(rest) }
    case 'workspace':
    case 'skill': {
      if (posix.isAbsolute(rest)) throw invalid('from', `${formatValue(ref)} has an absolute path; use a relative one`)
      const path = posix.normalize(rest).replace(/\/$/, '')
      if (path === '..' || path.startsWith('../'))
        throw invalid('from', `${formatValue(ref)} leads out by ".."; use a path inside`)
      return { scheme, path: path === '.' ? '' : path }
    }
    default:
      throw unsupportedError(ref, scheme)
  }
}

/** The name of an input without a destination: the last part of its path, without the version of an artifact. */
export function inputNameOf(ref: string): string {
  const [, scheme, rest = ref] = /^([\w+.-]+):\/\/(.*)$/s.exec(ref) ?? []
  const path = scheme === 'artifact' ? rest.replace(/@[0-9]+$/, '') : rest
  return posix.basename(path)
}

/** Turns an id of an execution into a name that is safe as a part of a path. */
export function safeExecId(execId: string): string {
  return execId.replaceAll(/[^A-Za-z0-9_-]/gu, '_')
}

function unsupportedError(ref: string, scheme: string | undefined): SandglassError {
  const what = scheme === undefined ? 'it has no scheme' : `there is no scheme ${formatValue(scheme)}`
  return invalid('from', `unsupported input ${formatValue(ref)}: ${what}; use ${SCHEMES}`)
}
