#include "report/page.h"

#include <algorithm>

#include "base/error.h"
#include "base/io/json.h"
#include "report/markup.h"

namespace thimble {
namespace {

std::string_view file_named(std::string_view name) {
  const auto found = std::ranges::find(page_files(), name, &PageFile::name);
  internal_check(found != page_files().end(), "there is no such file of the page");
  return found->text;
}

// "a.css b.css" as one text.
std::string joined(std::string_view names) {
  std::string all;
  while (!names.empty()) {
    const size_t gap = std::min(names.find(' '), names.size());
    all += file_named(names.substr(0, gap));
    names.remove_prefix(std::min(gap + 1, names.size()));
  }
  return all;
}

// Inside of a script element nothing may look like its end, or like a comment's beginning.
std::string script_text(const nlohmann::json& data) {
  std::string text;
  for (const char c : json_text(data)) {
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  }
  return text;
}

}  // namespace

std::string make_page(std::string_view name, std::string_view title, const nlohmann::json& data) {
  constexpr std::string_view kBegin = "<!-- ", kEnd = " -->";
  std::string_view rest = file_named(std::string(name) + ".html");
  std::string html;
  for (size_t at; (at = rest.find(kBegin)) != std::string_view::npos;) {
    html += rest.substr(0, at);
    rest.remove_prefix(at + kBegin.size());
    const size_t end = rest.find(kEnd);
    internal_check(end != std::string_view::npos, "a comment of the page does not end");
    const std::string_view asked = rest.substr(0, end);
    rest.remove_prefix(end + kEnd.size());
    const std::string_view what = asked.substr(0, asked.find(':'));
    const std::string_view names = asked.substr(std::min(asked.size(), what.size() + 2));
    if (what == "style")
      html += "<style>\n" + joined(names) + "</style>";
    else if (what == "script")
      html += "<script>\n" + joined(names) + "</script>";
    else if (what == "title")
      html += escaped_markup(title);
    else if (what == "data")
      html += "<script id=\"data\" type=\"application/json\">" + script_text(data) + "</script>";
  }
  return html += rest;
}

}  // namespace thimble
