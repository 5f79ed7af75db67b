// Which sources and which compiler made this code. Libraries that pass C++ objects to each other
// must be of one build.
#pragma once

namespace thimble {

// "0.1.0+4fd1c2a09be7, GNU 12.2.0": the version, a digest of what both sides of the seam to a
// backend are compiled from, and the compiler (written by cmake/build_id.cmake).
const char* build_id();

}  // namespace thimble
