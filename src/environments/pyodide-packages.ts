import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { SandglassError } from '../errors/index.ts'
import { platformOf, type PythonTarget } from './target.ts'

/** The part of pyodide-lock.json that is used. */
interface PyodideLock {
  readonly info: { readonly abi_version: string }
  readonly packages: Readonly<Record<string, { readonly file_name: string; readonly sha256: string }>>
}

/**
 * Makes a page of links to the packages that Pyodide itself distributes, each with the SHA-256 that the npm package pyodide lists;
 * undefined for another target.
 * @param base the address of the directory that holds them.
 * @throws SandglassError `pyodide_missing` without the npm package, or if its list is for another ABI than the sandbox.
 */
export function pyodideLinks(base: string, target: PythonTarget): string | undefined {
  const os = platformOf(target)?.os
  if (os?.name !== 'pyemscripten') return undefined
  const { info, packages } = readLock()
  if (info.abi_version !== `${os.major}_${os.minor}`) {
    throw new SandglassError(
      'pyodide_missing',
      `the npm package pyodide lists packages for the ABI ${info.abi_version}, and the sandbox has ${os.major}_${os.minor}; install one version for both`,
    )
  }
  const directory = new URL(base.endsWith('/') ? base : `${base}/`)
  const links = Object.values(packages)
    .filter(({ file_name: name }) => name.endsWith('.whl'))
    .map(({ file_name: name, sha256 }) => {
      const address = new URL(encodeURIComponent(name), directory)
      return `<a href="${address.href.replaceAll('&', '&amp;').replaceAll('"', '%22')}#sha256=${sha256}">${name}</a>`
    })
  return `<!DOCTYPE html><html><body>\n${links.join('\n')}\n</body></html>\n`
}

function readLock(): PyodideLock {
  try {
    const path = createRequire(import.meta.url).resolve('pyodide/pyodide-lock.json')
    return JSON.parse(readFileSync(path, 'utf8')) as PyodideLock
  } catch (error) {
    throw new SandglassError(
      'pyodide_missing',
      'environments.pyodidePackages needs the npm package pyodide; install it',
      {
        cause: error,
      },
    )
  }
}
