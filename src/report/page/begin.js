"use strict";
// The files of this script stand one behind the other inside of one function, and share its names.
(() => {
