#include "base/host/library_place.h"

#include <dlfcn.h>
#include <link.h>

namespace thimble {

std::filesystem::path own_folder() {
  Dl_info info = {};
  link_map* map = nullptr;
  const auto here = reinterpret_cast<const void*>(&own_folder);
  std::error_code ignored;
  if (dladdr1(here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) != 0 &&
      map != nullptr && map->l_name[0] != '\0') {  // a program has no name there
    return std::filesystem::absolute(map->l_name, ignored).parent_path();
  }
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

std::filesystem::path find_beside(const std::string& name) {
  const std::filesystem::path folder = own_folder();
  for (const char* place : {".", "lib", "../lib"}) {
    std::filesystem::path file = (folder / place / name).lexically_normal();
    std::error_code ignored;
    if (std::filesystem::is_regular_file(file, ignored)) return file;
  }
  return {};
}

}  // namespace thimble
