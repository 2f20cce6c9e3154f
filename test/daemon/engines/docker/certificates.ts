import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Paths of a pair of files and of the authority that signed it, named as Docker names them. */
export interface Certificate {
  /** Holds `ca.pem`, `cert.pem`, `key.pem`. */
  readonly directory: string
  readonly ca: string
  readonly cert: string
  readonly key: string
}

/** A private certificate authority for a test. */
export class Authority {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
    mkdirSync(directory, { recursive: true })
    openssl(directory, [
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
      '-subj',
      '/CN=sandglass test authority',
      '-keyout',
      'ca-key.pem',
      '-out',
      'ca.pem',
    ])
  }

  /** Signs a certificate for a server at 127.0.0.1, or for a client. */
  sign(name: string, use: 'serverAuth' | 'clientAuth'): Certificate {
    const directory = join(this.#directory, name)
    mkdirSync(directory)
    writeFileSync(
      join(directory, 'extensions'),
      `extendedKeyUsage=${use}\n${use === 'serverAuth' ? 'subjectAltName=IP:127.0.0.1\n' : ''}`,
    )
    openssl(directory, [
      'req',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-subj',
      `/CN=${name}`,
      '-keyout',
      'key.pem',
      '-out',
      'request.pem',
    ])
    openssl(directory, [
      'x509',
      '-req',
      '-in',
      'request.pem',
      '-CA',
      '../ca.pem',
      '-CAkey',
      '../ca-key.pem',
      '-CAcreateserial',
      '-days',
      '2',
      '-extfile',
      'extensions',
      '-out',
      'cert.pem',
    ])
    writeFileSync(join(directory, 'ca.pem'), readFileSync(join(this.#directory, 'ca.pem')))
    const at = (file: string): string => join(directory, file)
    return { directory, ca: at('ca.pem'), cert: at('cert.pem'), key: at('key.pem') }
  }
}

function openssl(cwd: string, args: readonly string[]): void {
  const { status, stderr, error } = spawnSync('openssl', args, { cwd, encoding: 'utf8' })
  if (status !== 0) throw new Error(`openssl ${args[0]}: ${error?.message ?? stderr}`)
}
