// The file of measured kernel times, as `--costs` names it.
#pragma once

#include <string>

namespace thimble {

inline constexpr const char* kModelledCosts = "modelled";
inline constexpr const char* kAutomaticCosts = "auto";

// costs-DEVICE.json in $THIMBLE_CACHE, else $XDG_CACHE_HOME/thimble, else ~/.cache/thimble; empty
// when none of these is set.
std::string usual_costs_path(const std::string& device);

// The file that a plan reads for `--costs asked`, or empty for modelled costs: automatic costs are
// the usual file if it is there.
std::string costs_to_read(const std::string& asked, const std::string& device);

// The file that `calibrate --costs asked` writes. Throws UserError when there is no place for it.
std::string costs_to_write(const std::string& asked, const std::string& device);

}  // namespace thimble
