import { join } from 'node:path'
import { firstPrivateFolder, privateFolder, temporaryFolder, userFolder, writable } from './folder.ts'
import { downloadFolder } from './remembered.ts'

/**
 * Sets the two variables that @actions/tool-cache reads, where the host has not set them or has set what cannot be
 * written: RUNNER_TEMP, into which it downloads, and RUNNER_TOOL_CACHE, where tools stay for later jobs.
 *
 * @param env changed in place: tool-cache reads process.env
 * @param folder the job's own folder: downloads go into one of this process's own in it, which `tidyFolder` removes
 */
export function setToolFolders(env: Record<string, string | undefined>, folder: string): void {
  if (!usable(env['RUNNER_TEMP'])) env['RUNNER_TEMP'] = privateFolder(downloadFolder(folder))
  if (!usable(env['RUNNER_TOOL_CACHE'])) {
    const cache = userFolder(env, 'XDG_CACHE_HOME')
    env['RUNNER_TOOL_CACHE'] = firstPrivateFolder([cache, () => join(temporaryFolder(), 'tools')])
  }
}

function usable(folder: string | undefined): boolean {
  return folder !== undefined && folder !== '' && writable(folder)
}
