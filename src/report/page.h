// Reports as one HTML file each, which needs no network: styles, scripts and data are written into
// it. The page itself is plain HTML, CSS and JavaScript in report/page/, embedded when this is
// built.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

namespace thimble {

// A file of report/page, by its name there.
struct PageFile {
  std::string_view name;
  std::string_view text;
};
std::span<const PageFile> page_files();  // generated: cmake/page_files.cmake

// The template NAME.html with what it asks for in comments put in their places:
//   <!-- style: a.css b.css -->   <!-- script: a.js b.js -->   <!-- title -->   <!-- data -->
std::string make_page(std::string_view name, std::string_view title, const nlohmann::json& data);

}  // namespace thimble
