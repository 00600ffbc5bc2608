"""All of Outlast on one machine: embedded servers and `outlast dev`."""
