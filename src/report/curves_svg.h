// How training went, as pictures for papers.
#pragma once

#include <string>
#include <vector>

#include "report/page_data.h"

namespace thimble {

// All curves of one chart ("loss") against steps: a complete SVG document.
std::string curves_svg(const std::string& title, const std::vector<Curve>& curves);

}  // namespace thimble
